-- For callers: docs/sql.md. It runs as the owner of the tables, whoever calls it.
create or replace function send(org text, message jsonb, idempotency_key text default null, traceparent text default null)
returns uuid
language sql volatile security definer
as $$ select command_by_sql('SendMessage', org, message, idempotency_key, traceparent) $$;
