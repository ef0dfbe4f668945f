-- For callers: docs/sql.md. It runs as the owner of the tables, whoever calls it.
create or replace function publish(org text, event jsonb, idempotency_key text default null) returns uuid
language sql volatile security definer
as $$ select command_by_sql('PublishEvent', org, event, idempotency_key) $$;
