-- The places of those lanes that are paused, or whose circuit has another generation than the one that was seen.
create or replace function closed_gates(p_lanes uuid[], p_generations int[]) returns int[] language plpgsql volatile as $$
begin
  return array(
    select g.nth from unnest(p_lanes, p_generations) with ordinality g(lane, generation, nth)
    -- Each lane by its key: as a join, all lanes may be read, once for a table that looked small.
    cross join lateral (select l.generation, l.paused from lane l where l.lane = g.lane limit 1) l
    where l.generation <> g.generation or l.paused);
end $$;
