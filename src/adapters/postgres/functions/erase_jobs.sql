-- Erases persons from jobs over many messages that name one of these texts (recipient, correlation id, reason) or messages. Answers false, and
-- changes nothing, while one of the jobs has not begun its journal, where the text would still be written.
create or replace function erase_jobs(p_org text, p_messages uuid[], p_texts text[]) returns boolean
language plpgsql volatile as $$
declare
  v_jobs uuid[];
  v_journals uuid[];
begin
  select coalesce(array_agg(r.id), '{}') into v_jobs from replay r where r.org_id = p_org and (
    r.selection #>> '{filter,to}' = any (p_texts) or r.selection #>> '{waiting,to}' = any (p_texts)
    or r.selection #>> '{waiting,correlationId}' = any (p_texts)
    or (r.selection::jsonb -> 'ids') ?| p_messages::text[]);
  if cardinality(v_jobs) = 0 then return true; end if;
  -- A journal begins at the time of its request.
  select coalesce(array_agg(e.stream_id), '{}') into v_journals from replay r
    join event e on e.version = 1 and e.stream ~ '^(access|blocked|command|replay)-' and e.at = r.requested_at and e.stream = 'replay-' || r.id
    where r.id = any (v_jobs);
  if cardinality(v_journals) < cardinality(v_jobs) then return false; end if;
  update replay r set reason = null, key = null, request_hash = null,
      selection = (select e.data -> 'selection' from event e
        where e.version = 1 and e.stream_id = any (v_journals) and e.stream = 'replay-' || r.id)
    where r.id = any (v_jobs);
  delete from detail where stream_id = any (v_journals);
  return true;
end $$;
