-- Slots of the lane up to `p_last` are taken: `slotsAfter` of src/domain/delivery/rateLimit.ts, and when the lane is worth a visit
-- again. A lane that was deferred beyond that stays so. The caller holds the lane's row.
create or replace function slots_taken(p_lane lane, p_last timestamptz) returns void
language plpgsql volatile as $$
declare
  v_next timestamptz := case when p_last < p_lane.next_slot_at then p_lane.next_slot_at
    else p_last + slot_interval_ms(p_lane.rate_limit, p_lane.rate_period_ms) * interval '1 millisecond' end;
begin
  update lane l set next_slot_at = v_next,
      slot_at = greatest(l.slot_at, v_next - slot_horizon_ms(l.rate_limit, l.rate_period_ms) / 2 * interval '1 millisecond'),
      returned_slots = nullif(array(select r.at from unnest(p_lane.returned_slots) r(at) where r.at > p_last), '{}')
    where l.lane = p_lane.lane;
end $$;
