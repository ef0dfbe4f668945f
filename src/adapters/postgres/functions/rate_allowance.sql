-- How many requests a lane lets through at p_now, and from when on each of them counts for `step`. After n of them the lane's next_slot_at is from_at
-- + n * step, and none leaves before.
-- Requests are further apart than the limit says by a twentieth of the window (whole periods, a second at least), at most a second. So a visit may
-- come 15 ms late without loss, a fast lane lets the requests of 15 ms go together, and the rest is for requests that are slow from claim to network.
create or replace function rate_allowance(
  p_limit int, p_period_ms int, p_next timestamptz, p_now timestamptz, out allowed int, out from_at timestamptz, out step interval
) language plpgsql immutable parallel safe as $$
declare
  v_window float8 := ceil(1000.0 / p_period_ms) * p_period_ms;
  v_step float8 := p_period_ms::float8 / p_limit * (1 + least(v_window / 20, 1000) / v_window);
begin
  step := v_step * interval '1 millisecond';
  from_at := greatest(p_next, p_now - interval '15 milliseconds');
  allowed := 1 + floor(15 / v_step)::int + floor(extract(epoch from p_now - from_at) * 1000 / v_step)::int;
end $$;
