-- The lock of a lane. A transaction that puts a message into the lane holds it shared until commit; one that sends the lane to sleep
-- takes it exclusively and looks again. So no message is put in without the lane being woken for it.
create or replace function lane_bucket(lane uuid) returns bigint language sql immutable parallel safe
as $$ select lock_key(64 + (hashtext(lane::text) & 63)) $$;
