-- Held by a change of an org, and shared by changes of its destinations.
create or replace function org_lock(org text) returns bigint language sql immutable parallel safe
as $$ select lock_key(256 + (hashtext(org) & 255)) $$;
