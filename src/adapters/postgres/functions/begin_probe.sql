-- Promises: the facts of a circuit and the standing its lane obeys change in one transaction, and only on top of the
-- generation that was seen: they never disagree, and of many who want to change a circuit one succeeds.

-- Part of claim_due, which holds the lane's row: lets one message through to find out. The row's generation has
-- been counted up. The permit is the new generation; it is worth something until it expires. The claim then reaches the disk
-- before it answers: whoever reads the log may have seen the fact, and a crash would give its place to another one.
create or replace function begin_probe(p_lane lane, p_probe uuid) returns void
language plpgsql volatile as $$
declare
  v_now timestamptz := date_trunc('milliseconds', clock_timestamp());
  v_expires timestamptz := v_now + coalesce(p_lane.permit_ms, {{timeoutUnknownMs}} + {{permitSpareMs}}) * interval '1 millisecond';
begin
  perform set_config('synchronous_commit', 'on', true);
  insert into event (stream_id, stream, tx, at, version, name, data) values (
    p_lane.circuit_stream, 'circuit-' || p_lane.lane, log_tx(), v_now, p_lane.generation,
    {{probedName}},
    replace(replace({{probedData}}, {{holeId}}, p_probe::text),
      {{holeTime}}, to_char(v_expires at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::json);
  update lane l set circuit = 'HALF_OPEN', generation = p_lane.generation, blocked_until = v_expires
    where l.lane = p_lane.lane;
end $$;
