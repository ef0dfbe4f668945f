-- From one slot of a rate limit to the next: `intervalOf` of src/domain/delivery/rateLimit.ts.
create or replace function slot_interval_ms(p_limit int, p_period_ms int) returns float8 language sql immutable parallel safe as $$
  select p_period_ms::float8 / p_limit
    * (1 + least({{spread}}, {{spreadMaxMs}} / (ceil({{windowMinMs}}::float8 / p_period_ms) * p_period_ms)))
$$;
