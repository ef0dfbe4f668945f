-- Answers false, and changes nothing, when the circuit has another generation.
create or replace function change_circuit(
  p_lane uuid, p_generation int, p_stream uuid, p_names text[], p_data text[],
  p_circuit text, p_failures int, p_blocked_until timestamptz, p_in_flight_max int, p_actor text default null
) returns boolean
language plpgsql volatile as $$
declare
  v_now timestamptz := date_trunc('milliseconds', clock_timestamp());
  v_tx bigint := log_tx();
begin
  insert into lane (lane, ready_at) values (p_lane, 'infinity') on conflict do nothing;
  update lane l set circuit = p_circuit, generation = p_generation + cardinality(p_names), failures = p_failures,
      blocked_until = p_blocked_until, in_flight_max = p_in_flight_max, circuit_stream = p_stream
    where l.lane = p_lane and l.generation = p_generation;
  if not found then return false; end if;
  insert into event (stream_id, stream, tx, at, actor, version, name, data, org_id)
    select p_stream, 'circuit-' || p_lane, v_tx, v_now, p_actor,
      p_generation + f.n, f.name, f.data::json,
      -- The audit tells changes by hand.
      case when p_actor is not null then (select d.org_id from destination d where d.id = p_lane) end
    from unnest(p_names, p_data) with ordinality f(name, data, n);
  return true;
end $$;
