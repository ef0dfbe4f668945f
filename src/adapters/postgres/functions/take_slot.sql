-- One slot of a lane for a request that missed its own: `nextSlot` of src/domain/delivery/rateLimit.ts. Answers in milliseconds
-- the slot, null when none is near, and what time it is here. A lane without a limit has one whenever it is asked.
create or replace function take_slot(p_lane uuid, p_lead_ms int, out slot float8, out said float8)
language plpgsql volatile as $$
declare
  v_row lane;
  v_now timestamptz;
  v_from timestamptz;
  v_slot timestamptz;
begin
  select * into v_row from lane l where l.lane = p_lane for update;
  v_now := clock_timestamp();
  v_from := v_now + p_lead_ms * interval '1 millisecond';
  v_slot := coalesce((select min(r.at) from unnest(v_row.returned_slots) r(at) where r.at >= v_from), greatest(v_row.next_slot_at, v_from));
  said := extract(epoch from v_now) * 1000;
  if v_row.rate_limit is null then slot := said;
  elsif v_slot <= v_now + {{nextWithinMs}} * interval '1 millisecond' then
    slot := extract(epoch from v_slot) * 1000;
    perform slots_taken(v_row, v_slot);
  end if;
end $$;
