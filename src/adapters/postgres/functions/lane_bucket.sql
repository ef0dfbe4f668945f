-- Who puts a message into a lane holds the lane's bucket shared until commit; who wants to send the lane to sleep
-- takes it exclusively and looks again. So no message is put in while nobody would wake the lane for it.
create or replace function lane_bucket(lane uuid) returns bigint language sql immutable parallel safe
as $$ select lock_key(lane_slot(lane)) $$;
