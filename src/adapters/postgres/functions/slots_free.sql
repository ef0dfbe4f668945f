-- The slots of a rate limit that may be handed out now: `slotsFree` of src/domain/delivery/rateLimit.ts, where it is explained.
create or replace function slots_free(
  p_limit int, p_period_ms int, p_next_slot_at timestamptz, p_returned timestamptz[], p_now timestamptz, p_max int
) returns timestamptz[]
language plpgsql immutable as $$
declare
  v_interval float8 := slot_interval_ms(p_limit, p_period_ms);
  v_first timestamptz := greatest(p_next_slot_at, p_now);
  v_again timestamptz[] := array(select r.at from unnest(p_returned) r(at) where r.at >= p_now order by r.at limit p_max);
  v_ahead int := floor(extract(epoch from p_now - v_first) * 1000 / v_interval + slot_horizon_ms(p_limit, p_period_ms) / v_interval) + 1;
begin
  return v_again || array(select v_first + nth * v_interval * interval '1 millisecond'
    from generate_series(0, least(p_max - cardinality(v_again), v_ahead) - 1) nth);
end $$;
