-- Promises: the facts of a circuit and the standing its lane obeys change in one transaction, and only on top of the
-- generation that was seen: they never disagree, and of many who want to change a circuit one succeeds.

-- Part of posthaste.claim_due, which holds the lane's row: lets one message through to find out. The row's generation has
-- been counted up. The permit is the new generation; it is worth something until it expires.
create function posthaste.permit_probe(p_lane posthaste.lane, p_probe uuid) returns void
language plpgsql volatile set search_path = posthaste, pg_temp as $$
declare
  v_now timestamptz := date_trunc('milliseconds', clock_timestamp());
  v_expires timestamptz := v_now + p_lane.permit_ms * interval '1 millisecond';
begin
  insert into event (stream_id, stream, tx, at, version, name, data) values (
    p_lane.circuit_stream, 'circuit-' || p_lane.lane, pg_current_xact_id()::text::bigint, v_now, p_lane.generation,
    'CircuitProbed@1',
    json_build_object('probe', p_probe,
      'expiresAt', to_char(v_expires at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')));
  update lane l set circuit = 'HALF_OPEN', generation = p_lane.generation, shut_until = v_expires
    where l.lane = p_lane.lane;
end $$;

-- Answers false, and changes nothing, when the circuit has another generation by now.
create function posthaste.change_circuit(
  p_lane uuid, p_generation int, p_stream uuid, p_names text[], p_data text[],
  p_circuit text, p_failures int, p_shut_until timestamptz, p_in_flight_max int
) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  insert into lane (lane, ready_at) values (p_lane, 'infinity') on conflict do nothing;
  update lane l set circuit = p_circuit, generation = p_generation + cardinality(p_names), failures = p_failures,
      shut_until = p_shut_until, in_flight_max = p_in_flight_max, circuit_stream = p_stream
    where l.lane = p_lane and l.generation = p_generation;
  if not found then return false; end if;
  insert into event (stream_id, stream, tx, at, version, name, data)
    select p_stream, 'circuit-' || p_lane, pg_current_xact_id()::text::bigint, date_trunc('milliseconds', clock_timestamp()),
      p_generation + f.n, f.name, f.data::json
    from unnest(p_names, p_data) with ordinality f(name, data, n);
  return true;
end $$;

-- Counts what workers saw, and answers where each circuit that still has the generation they saw it under now stands.
-- Rows are locked in the order that posthaste.wake_lanes locks them.
create function posthaste.report_outcomes(
  p_lanes uuid[], p_generations int[], p_succeeded boolean[], p_failures int[]
) returns setof posthaste.lane
language plpgsql volatile set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  perform 1 from lane l join unnest(p_lanes) r(lane) on l.lane = r.lane order by l.lane for update of l;
  update lane l set
      failures = case when r.succeeded then r.failures else l.failures + r.failures end,
      in_flight_max = case when not r.succeeded then l.in_flight_max
        when l.in_flight_max < 512 then l.in_flight_max * 2 end
    from unnest(p_lanes, p_generations, p_succeeded, p_failures) r(lane, generation, succeeded, failures)
    where l.lane = r.lane and l.generation = r.generation and l.circuit = 'CLOSED';
  return query
    select l.* from unnest(p_lanes, p_generations) r(lane, generation)
      join lane l on l.lane = r.lane and l.generation = r.generation;
end $$;

-- The lane does what its destination's settings say, from the same commit on. What waits for a destination that was removed
-- must be able to come to its end, so nothing holds it back.
create function posthaste.instruct_lane() returns trigger
language plpgsql set search_path = posthaste, pg_temp as $$
declare
  v_removed boolean := new.removed_at is not null;
  v_limit int := case when v_removed then null else (new.settings #>> '{rateLimit,limit}')::int end;
  v_period int := case when v_removed then null else (new.settings #>> '{rateLimit,periodMs}')::int end;
  -- Not every kind of destination can be paused.
  v_paused boolean := coalesce((to_jsonb(new) ->> 'paused')::boolean, false) and not v_removed;
  -- Longer than any request: the spare time covers what comes before and after it.
  v_permit int := coalesce((new.settings ->> 'timeoutMs')::int, 30000) + 2000;
begin
  insert into lane as l (lane, ready_at, paused, rate_limit, rate_period_ms, permit_ms)
    values (new.id, 'infinity', v_paused, v_limit, v_period, v_permit)
  on conflict (lane) do update set
    paused = excluded.paused, rate_limit = excluded.rate_limit, rate_period_ms = excluded.rate_period_ms,
    permit_ms = excluded.permit_ms,
    -- A limit that was changed counts from now on.
    slot_at = case when (l.rate_limit, l.rate_period_ms) is not distinct from (excluded.rate_limit, excluded.rate_period_ms)
      then l.slot_at end
  where (l.paused, l.rate_limit, l.rate_period_ms, l.permit_ms)
    is distinct from (excluded.paused, excluded.rate_limit, excluded.rate_period_ms, excluded.permit_ms);
  if v_removed then
    perform change_circuit(l.lane, l.generation, l.circuit_stream, array['CircuitReset@1'],
        array['{"reason":"the destination was removed"}'], 'CLOSED', 0, null, null)
      from lane l where l.lane = new.id and l.circuit <> 'CLOSED';
  end if;
  return null;
end $$;
alter table posthaste.endpoint add column paused boolean not null default false;
create trigger instruct_lane after insert or update of settings, paused, removed_at on posthaste.endpoint
  for each row execute function posthaste.instruct_lane();
