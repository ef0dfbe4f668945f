-- The lock of a lane: shared by transactions that put a message in, until commit; exclusive for one that sends the lane to sleep and looks again. So
-- no message is put in without waking the lane.
create or replace function lane_bucket(lane uuid) returns bigint language sql immutable parallel safe
as $$ select lock_key(64 + (hashtext(lane::text) & 63)) $$;
