-- The place of this transaction's facts in the order of the log.
create or replace function log_tx() returns bigint language sql volatile
as $$ select base + pg_current_xact_id()::text::bigint from log_base $$;
