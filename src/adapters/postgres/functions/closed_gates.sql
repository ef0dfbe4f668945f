-- The places of the lanes that are paused, or whose circuit has another generation than the one given.
create or replace function closed_gates(p_lanes uuid[], p_generations int[]) returns int[] language plpgsql volatile as $$
begin
  return array(
    -- Each lane by its key: a join may read all lanes of a table that looked small.
    with state as materialized (
      select d.lane, l.generation, l.paused from (select distinct u.lane from unnest(p_lanes) u(lane)) d
      cross join lateral (select l.generation, l.paused from lane l where l.lane = d.lane limit 1) l
    )
    select g.nth from unnest(p_lanes, p_generations) with ordinality g(lane, generation, nth)
    join state s on s.lane = g.lane
    where s.generation <> g.generation or s.paused);
end $$;
