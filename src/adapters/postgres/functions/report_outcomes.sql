-- Counts outcomes that workers saw, and answers the lanes whose circuits still have the generation they saw. Locks rows in the order of wake_lanes.
create or replace function report_outcomes(
  p_lanes uuid[], p_generations int[], p_succeeded boolean[], p_failures int[]
) returns setof lane
language plpgsql volatile as $$
begin
  perform 1 from lane l join unnest(p_lanes) r(lane) on l.lane = r.lane order by l.lane for update of l;
  update lane l set
      failures = case when r.succeeded then r.failures else l.failures + r.failures end,
      in_flight_max = case when not r.succeeded then l.in_flight_max
        when l.in_flight_max < {{inFlightLast}} then l.in_flight_max * {{inFlightFactor}} end
    from unnest(p_lanes, p_generations, p_succeeded, p_failures) r(lane, generation, succeeded, failures)
    where l.lane = r.lane and l.generation = r.generation and l.circuit = 'CLOSED';
  return query
    select l.* from unnest(p_lanes, p_generations) r(lane, generation)
      join lane l on l.lane = r.lane and l.generation = r.generation;
end $$;
