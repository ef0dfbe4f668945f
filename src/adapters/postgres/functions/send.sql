-- For callers: docs/sql.md. Keeps a command for when the caller's transaction commits, and answers its id; a used key answers the id it was used for,
-- and the command is judged all the same. Takes no lock, notifies nobody, runs as the owner of the tables. Two forms, so that a driver that binds
-- text needs no cast.
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
