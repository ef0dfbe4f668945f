-- For callers: docs/sql.md. Keeps a command for when, and if, the caller's transaction commits; answers the id that it will
-- have. A key that has been used answers what it was used for, and is judged all the same. It takes no lock and notifies nobody.
-- It runs as the owner of the tables, whoever calls it.
--
-- Callers pay for this in their own transactions, and it costs them little more than the insert. What publish.sql has in common
-- with it stands there again: a function between them would cost as much as half the insert.
create or replace function send(org text, message jsonb, idempotency_key text default null, traceparent text default null)
returns uuid
language plpgsql volatile security definer as $$
declare
  v_now bigint := date_part('epoch', clock_timestamp()) * 1000000;
  v_id uuid := uuid_v7(v_now, gen_random_uuid());
  v_known uuid;
begin
  if org is null then
    raise exception 'org must not be null' using errcode = 'null_value_not_allowed';
  end if;
  if message is null then
    raise exception 'message must not be null' using errcode = 'null_value_not_allowed';
  end if;
  insert into sql_command (id, org_id, type, key, request, traceparent)
    values (v_id, org, 'SendMessage', idempotency_key, message, left(traceparent, 100));
  if idempotency_key is not null then
    select i.message_id into v_known from idempotency i where i.org_id = org and i.key = idempotency_key;
  end if;
  return coalesce(v_known, v_id);
end $$;
