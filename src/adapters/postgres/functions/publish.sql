-- For callers: docs/sql.md. What send.sql does for a message this does for an event.
create or replace function publish(org text, event jsonb, idempotency_key text default null) returns uuid
language plpgsql volatile security definer as $$
declare
  v_now bigint := date_part('epoch', clock_timestamp()) * 1000000;
  v_id uuid := uuid_v7(v_now, gen_random_uuid());
  v_known uuid;
begin
  if org is null then
    raise exception 'org must not be null' using errcode = 'null_value_not_allowed';
  end if;
  if event is null then
    raise exception 'event must not be null' using errcode = 'null_value_not_allowed';
  end if;
  insert into sql_command (id, org_id, type, key, request) values (v_id, org, 'PublishEvent', idempotency_key, event);
  if idempotency_key is not null then
    select i.event_id into v_known from event_idempotency i where i.org_id = org and i.key = idempotency_key;
  end if;
  return coalesce(v_known, v_id);
end $$;
