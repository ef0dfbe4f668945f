-- Requests that became no message: those that a dossier's consent refused, and commands that were refused after their caller had gone.
create or replace function erase_requests(p_org text, p_field text, p_values text[]) returns void
language plpgsql volatile as $$
declare
  v_streams uuid[];
begin
  if p_field = 'metadata' then return; end if;
  perform 1 from projection order by name, generation for update;
  -- One journal holds what was refused of one dossier.
  select array_agg(distinct a.stream_id) into v_streams from audit a
    where a.generation = (select p.generation from projection p where p.name = 'audit' and p.live)
      and a.org_id = p_org and a.operation = 'BLOCKED_BY_POLICY'
      and case p_field when 'recipient' then a.details ->> 'to' when 'dossierId' then a.dossier_id else a.correlation_id end = any (p_values);
  insert into erased_stream (stream_id) select unnest(v_streams) on conflict do nothing;
  update event e set data = erased_fact(e.name, e.data) where e.stream_id = any (v_streams);
  perform erase_rows(v_streams);
  delete from refused_command c where c.org_id = p_org
    and c.request ->> case p_field when 'recipient' then 'to' else p_field end = any (p_values);
end $$;
