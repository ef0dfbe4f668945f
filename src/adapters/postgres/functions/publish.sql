-- For callers: docs/sql.md. As send.sql, for an event.
create or replace function publish(org text, event jsonb, idempotency_key text default null) returns uuid
language sql volatile security definer as $$
  select keep_command('PublishEvent', org, event, event::text, idempotency_key, null)
$$;

create or replace function publish(org text, event text, idempotency_key text default null) returns uuid
language sql volatile security definer as $$
  select keep_command('PublishEvent', org, event::jsonb, event, idempotency_key, null)
$$;
