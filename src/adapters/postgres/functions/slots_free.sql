-- How many messages a rate limit lets go now: `slotsFree` of src/domain/delivery/rateLimit.ts, where it is explained.
create or replace function slots_free(p_limit int, p_period_ms int, p_slot_at timestamptz, p_now timestamptz) returns int
language plpgsql immutable as $$
declare
  v_interval float8 := p_period_ms::float8 / p_limit;
  v_burst float8 := greatest(1, floor({{burstMs}} / v_interval));
  v_lead float8 := (v_burst - ceil(v_burst / 2)) * v_interval;
  v_end timestamptz := greatest(p_slot_at + v_lead * interval '1 millisecond', p_now - {{slackMs}} * interval '1 millisecond');
begin
  return greatest(0, floor(extract(epoch from p_now - v_end) * 1000 / v_interval + {{rounding}}) + v_burst);
end $$;
