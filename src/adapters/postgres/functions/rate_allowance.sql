-- The law of a rate limit: how many requests a lane lets through now, and from when on each of them counts for `step`. After n of them
-- the lane's next_slot_at is from_at + n * step, and nothing leaves before that.
-- Requests are a little further apart than the limit says, by a twentieth of the window (whole periods, a second at least), but no more
-- than a second. In return a visit may come 15 ms late without loss, and a fast lane lets the requests of 15 ms go together: both
-- together use 30 ms of that, and the rest is for requests that take longer than others from their claim to the network.
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
