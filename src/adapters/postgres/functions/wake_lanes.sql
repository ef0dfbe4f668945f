-- Lanes are visited for what came to them. Their rows are the last that anybody locks, in order, and once in a transaction: nobody
-- who holds one waits for anything but a later one. A lane that is awake is not locked; the caller holds the lanes' buckets, so
-- none falls asleep meanwhile.
create or replace function wake_lanes(p_lanes uuid[], p_dues timestamptz[]) returns void
language plpgsql volatile as $$
declare
  v_late uuid[];
begin
  insert into lane (lane, ready_at)
    select w.lane, 'infinity' from unnest(p_lanes) w(lane)
    -- Each lane by its key: as a join, all lanes may be read, once for a table that looked small.
    left join lateral (select true as known from lane l where l.lane = w.lane limit 1) l on true
    where l.known is null
    group by w.lane order by w.lane
  on conflict do nothing;
  v_late := array(
    select l.lane from lane l join unnest(p_lanes, p_dues) w(lane, due) on l.lane = w.lane
    where l.lane = any (p_lanes) and l.ready_at > w.due order by l.lane for update of l);
  if cardinality(v_late) > 0 then
    update lane l set ready_at = w.due
      from (select u.lane, min(u.due) as due from unnest(p_lanes, p_dues) u(lane, due) group by u.lane) w
      where l.lane = w.lane and l.lane = any (v_late) and l.ready_at > w.due;
  end if;
end $$;
