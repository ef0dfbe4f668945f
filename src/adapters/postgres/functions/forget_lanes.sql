-- Forgets lanes that are no destination's, hold nothing, and are as a message that came to them would make them anew. A lane is made
-- where a message comes to a destination that was forgotten.
create or replace function forget_lanes(p_limit int) returns void
language plpgsql volatile
as $$
declare
  v_lanes uuid[] := array(
    select l.lane from lane l
    where l.org_id is null and l.ready_at = 'infinity' and l.generation = 0 and l.failures = 0 and l.circuit = 'CLOSED' and not l.paused and not l.blocks
      and num_nulls(l.rate_limit, l.rate_period_ms, l.permit_ms, l.blocked_until, l.in_flight_max, l.next_slot_at, l.returned_slots) = 7
      and coalesce(l.slot_at <= clock_timestamp(), true) and holds_nothing(l.lane)
    order by l.lane limit p_limit for update skip locked);
begin
  -- As in forget_destinations.
  v_lanes := array(select i from unnest(v_lanes) i where pg_try_advisory_xact_lock(lane_bucket(i)));
  delete from lane l where l.lane = any (v_lanes) and l.ready_at = 'infinity' and holds_nothing(l.lane)
    and not exists (select from destination d where d.id = l.lane);
end $$;
