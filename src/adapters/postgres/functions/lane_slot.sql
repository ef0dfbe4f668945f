-- Which of the buckets of lanes a lane is in.
create or replace function lane_slot(lane uuid) returns int language sql immutable parallel safe
as $$ select 64 + (hashtext(lane::text) & 63) $$;
