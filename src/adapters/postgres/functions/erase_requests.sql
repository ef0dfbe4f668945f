-- What names a person and became no message: jobs, requests that a dossier's consent refused, and commands that were refused after their
-- caller had gone. Answers false, and changes nothing, while a job that is for them has not begun (erase_jobs), and false while a message
-- that was accepted before may still come.
create or replace function erase_requests(p_erasure uuid, p_org text, p_field text, p_values text[]) returns boolean
language plpgsql volatile as $$
declare
  v_streams uuid[];
  v_commands uuid[];
begin
  if p_field in ('recipient', 'correlationId') and not erase_jobs(p_erasure, p_org, '{}', p_values) then return false; end if;
  perform 1 from projection order by name, generation for update;
  -- One journal holds what was refused of one dossier. Metadata is no part of it.
  select array_agg(distinct a.stream_id) into v_streams from event a
    where p_field <> 'metadata' and a.org_id = p_org and a.name = 'MessageBlocked@1'
      and a.data ->> case p_field when 'recipient' then 'to' else p_field end = any (p_values);
  v_commands := array(select s.id from sought_commands(p_org, p_field, p_values) s);
  v_streams := v_streams || array(select e.stream_id from event e
    where e.version = 1 and e.stream ~ '^(access|command|replay)-' and e.stream = any (select 'command-' || c from unnest(v_commands) c)
      -- A command is told of before its row is written, by the time it takes to come to that.
      and e.at >= (select min(c.at) - interval '1 day' from refused_command c where c.id = any (v_commands))
      and e.at <= (select max(c.at) + interval '1 minute' from refused_command c where c.id = any (v_commands)));
  insert into erased_stream (stream_id) select unnest(v_streams) on conflict do nothing;
  update event e set data = erased_fact(e.name, e.data), actor = erased_actor(e.actor) where e.stream_id = any (v_streams);
  delete from refused_command c where c.id = any (v_commands);
  return not exists (
    select from append_intent i join erasure x on i.at < x.requested_at
    where x.id = p_erasure and i.opens and not exists (select from event e where e.stream_id = i.message_id));
end $$;
