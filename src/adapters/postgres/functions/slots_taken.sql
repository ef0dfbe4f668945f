-- When a lane is worth a visit again after `p_count` more messages went: `taken` of src/domain/delivery/rateLimit.ts.
create or replace function slots_taken(p_limit int, p_period_ms int, p_slot_at timestamptz, p_now timestamptz, p_count int)
returns timestamptz
language plpgsql immutable as $$
declare
  v_interval float8 := p_period_ms::float8 / p_limit;
  v_burst float8 := greatest(1, floor({{burstMs}} / v_interval));
  v_lead float8 := (v_burst - ceil(v_burst / 2)) * v_interval;
  v_end timestamptz := greatest(p_slot_at + v_lead * interval '1 millisecond', p_now - {{slackMs}} * interval '1 millisecond');
begin
  return v_end + (p_count * v_interval - v_lead) * interval '1 millisecond';
end $$;
