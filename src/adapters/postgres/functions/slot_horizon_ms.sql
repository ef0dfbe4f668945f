-- How far ahead the slots of a rate limit are handed out: `horizonOf` of src/domain/delivery/rateLimit.ts.
create or replace function slot_horizon_ms(p_limit int, p_period_ms int) returns float8 language sql immutable parallel safe as $$
  select least(greatest({{slotsAhead}} * slot_interval_ms(p_limit, p_period_ms), {{horizonMinMs}}), {{horizonMaxMs}})
$$;
