-- The lock of a line until commit: an entering message must see the ones before it, a leaving one those behind. A bounded number, taken in order.
create or replace function line_bucket(lane uuid, line text) returns bigint language sql immutable parallel safe
as $$ select lock_key(128 + (hashtext(lane::text || line) & 127)) $$;
