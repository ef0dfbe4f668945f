-- Advisory locks are shared by all who use the database. Ours are named after the schema, so that two Posthastes in one
-- database do not wait for each other. 1 is held by a step of retention, and by whoever begins a rebuild; 64 to 127 are the buckets of
-- lanes, 128 to 255 those of lines, 256 to 511 those of orgs; migrate.ts holds 0. The schema never changes for one function, so what is
-- computed once stays true.
create or replace function lock_key(nth int) returns bigint language sql immutable parallel safe
as $$ select (hashtext(current_schema())::bigint << 16) + nth $$;
