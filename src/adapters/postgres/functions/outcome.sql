-- For callers: docs/sql.md. Null for an id that was never given, whose transaction has not committed, or whose message is forgotten.
create or replace function outcome(id uuid) returns jsonb
language plpgsql stable security definer as $$
declare
  v_problem json;
  v_became uuid;
begin
  select r.problem into v_problem from refused_command r where r.id = outcome.id;
  if found then return jsonb_build_object('status', 'REFUSED', 'problem', v_problem); end if;
  if exists (select from sql_command c where c.id = outcome.id) then return jsonb_build_object('status', 'PENDING'); end if;
  select a.became into v_became from sql_command_alias a where a.id = outcome.id;
  if found then return jsonb_build_object('status', 'ACCEPTED', 'id', v_became); end if;
  if exists (select from event e where e.stream_id = outcome.id) or exists (select from publication p where p.id = outcome.id)
  then return jsonb_build_object('status', 'ACCEPTED'); end if;
  return null;
end $$;
