-- Keeps a command for when, and if, the caller's transaction commits; answers the id that it will have. A key that has been
-- used answers what it was used for, and is judged all the same. It takes no lock and notifies nobody.
create or replace function command_by_sql(p_type text, p_org text, p_request jsonb, p_key text, p_trace text default null)
returns uuid
language plpgsql volatile as $$
declare
  v_id uuid := new_id();
  v_known uuid;
begin
  if p_org is null then
    raise exception 'org must not be null' using errcode = 'null_value_not_allowed';
  end if;
  if p_request is null then
    raise exception '% must not be null', case p_type when 'SendMessage' then 'message' else 'event' end
      using errcode = 'null_value_not_allowed';
  end if;
  insert into sql_command (id, org_id, type, key, request, traceparent)
    values (v_id, p_org, p_type, p_key, p_request, left(p_trace, 100));
  if p_key is not null and p_type = 'SendMessage' then
    select i.message_id into v_known from idempotency i where i.org_id = p_org and i.key = p_key;
  elsif p_key is not null then
    select i.event_id into v_known from event_idempotency i where i.org_id = p_org and i.key = p_key;
  end if;
  return coalesce(v_known, v_id);
end $$;
