-- Below it every transaction has ended, so a reader up to it misses nothing. Read it in a subquery, which is computed once: it is no constant to the
-- planner.
create or replace function log_end() returns bigint language sql stable
as $$ select base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint from log_base $$;
