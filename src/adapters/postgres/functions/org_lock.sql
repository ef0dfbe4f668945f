-- What makes a change of an org wait for changes of its destinations, and these for it.
create or replace function org_lock(org text) returns bigint language sql immutable parallel safe
as $$ select lock_key(256 + (hashtext(org) & 255)) $$;
