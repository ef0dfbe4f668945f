-- Lines change under a lock until commit: who comes in must see whether somebody stands before it, and who goes out
-- whether somebody stands behind. A bounded number of locks, taken in order.
create or replace function line_bucket(lane uuid, line text) returns bigint language sql immutable parallel safe
as $$ select lock_key(128 + (hashtext(lane::text || line) & 127)) $$;
