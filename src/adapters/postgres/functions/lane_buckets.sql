-- The buckets of these lanes, in the order in which they are locked. Of many lanes each bucket is named once: a name takes 2 µs.
create or replace function lane_buckets(lanes uuid[]) returns setof bigint language sql immutable parallel safe
as $$ select lock_key(b.slot) from (select distinct lane_slot(l) as slot from unnest(lanes) l) b order by b.slot $$;
