-- The buckets of these lanes in locking order, each named once: a name takes 2 µs.
create or replace function lane_buckets(lanes uuid[]) returns setof bigint language sql immutable parallel safe
as $$ select lock_key(b.nth) from (select distinct 64 + (hashtext(l::text) & 63) as nth from unnest(lanes) l) b order by b.nth $$;
