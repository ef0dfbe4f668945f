-- For callers: docs/sql.md. Keeps a command for when, and if, the caller's transaction commits; answers the id that it will
-- have. A key that has been used answers what it was used for, and is judged all the same. It takes no lock and notifies nobody.
-- It runs as the owner of the tables, whoever calls it. Two forms, so that a driver that binds text needs no cast.
create or replace function send(org text, message jsonb, idempotency_key text default null, traceparent text default null)
returns uuid
language sql volatile security definer as $$
  select keep_command('SendMessage', org, message, message::text, idempotency_key, traceparent)
$$;

create or replace function send(org text, message text, idempotency_key text default null, traceparent text default null)
returns uuid
language sql volatile security definer as $$
  select keep_command('SendMessage', org, message::jsonb, message, idempotency_key, traceparent)
$$;
