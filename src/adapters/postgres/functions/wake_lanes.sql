create or replace function wake_lanes(p_lanes uuid[], p_dues timestamptz[]) returns void
language plpgsql volatile as $$
begin
  perform 1 from lane l join unnest(p_lanes, p_dues) w(lane, due) on l.lane = w.lane
    where l.ready_at > w.due order by l.lane for update of l;
  if found then
    update lane l set ready_at = w.due
      from (select u.lane, min(u.due) as due from unnest(p_lanes, p_dues) u(lane, due) group by u.lane) w
      where l.lane = w.lane and l.ready_at > w.due;
  end if;
  insert into lane (lane, ready_at)
    select w.lane, min(w.due) from unnest(p_lanes, p_dues) w(lane, due)
    where not exists (select 1 from lane l where l.lane = w.lane)
    group by w.lane order by w.lane
  on conflict (lane) do update set ready_at = least(lane.ready_at, excluded.ready_at);
end $$;
