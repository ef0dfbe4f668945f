-- Advisory locks of this schema. 0: migrate.ts; 1: a step of retention, or the begin of a rebuild; 2: continue_log; 64 to 127: lanes; 128 to 255:
-- lines; 256 to 511: orgs. Immutable because the schema never changes for one function.
create or replace function lock_key(nth int) returns bigint language sql immutable parallel safe
as $$ select (hashtext(current_schema())::bigint << 16) + nth $$;
