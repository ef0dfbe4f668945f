-- Erases persons from what became no message: jobs, requests that a consent refused, and refused commands. Answers false, and changes nothing, while
-- a job for them has not begun (erase_jobs), and false while a message accepted before may still come.
create or replace function erase_requests(p_erasure uuid, p_org text, p_field text, p_values text[]) returns boolean
language plpgsql volatile as $$
declare
  v_commands uuid[];
begin
  if p_field in ('recipient', 'correlationId') and not erase_jobs(p_org, '{}', p_values) then return false; end if;
  -- A blocked request has no metadata.
  delete from detail d using event e
    where p_field <> 'metadata' and e.org_id = p_org and e.name like 'MessageBlocked@%' and d.stream_id = e.stream_id and d.version = e.version
      and case p_field when 'recipient' then d.data ->> 'to' when 'dossierId' then e.data ->> 'dossierId' else d.data ->> 'correlationId' end = any (p_values);
  v_commands := array(select s.id from sought_commands(p_org, p_field, p_values) s);
  delete from detail d using event e
    where e.version = 1 and e.stream ~ '^(access|blocked|command|replay)-' and e.stream = any (select 'command-' || c from unnest(v_commands) c)
      -- The fact is written a little before the row.
      and e.at >= (select min(c.at) - interval '1 day' from refused_command c where c.id = any (v_commands))
      and e.at <= (select max(c.at) + interval '1 minute' from refused_command c where c.id = any (v_commands))
      and d.stream_id = e.stream_id;
  delete from refused_command c where c.id = any (v_commands);
  return not exists (
    select from append_intent i join erasure x on i.at < x.requested_at
    where x.id = p_erasure and i.opens and not exists (select from event e where e.stream_id = i.message_id));
end $$;
