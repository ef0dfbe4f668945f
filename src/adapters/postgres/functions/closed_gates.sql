-- The places of those lanes that are paused, or whose circuit has another generation than the one that was seen.
create or replace function closed_gates(p_lanes uuid[], p_generations int[]) returns int[] language plpgsql volatile as $$
begin
  return array(
    select g.nth from unnest(p_lanes, p_generations) with ordinality g(lane, generation, nth)
    where exists (select 1 from lane l where l.lane = g.lane and (l.generation <> g.generation or l.paused)));
end $$;
