-- Lanes are visited for what came to them. Their rows are the last that anybody locks, in order, and once in a transaction: nobody
-- who holds one waits for anything but a later one. A lane that is awake is not locked; the caller holds the lanes' buckets, so
-- none falls asleep meanwhile.
-- Each lane is named once and found by its key, whatever the table looked like: an event may come to thousands, and a join would
-- look at each of them for each.
create or replace function wake_lanes(p_lanes uuid[], p_dues timestamptz[]) returns void
language plpgsql volatile as $$
begin
  insert into lane as l (lane, ready_at)
    select w.lane, w.due
    from (select u.lane, min(u.due) as due from unnest(p_lanes, p_dues) u(lane, due) group by u.lane) w
    left join lateral (select k.ready_at from lane k where k.lane = w.lane limit 1) k on true
    where k.ready_at is null or k.ready_at > w.due
    order by w.lane
  on conflict (lane) do update set ready_at = excluded.ready_at where l.ready_at > excluded.ready_at;
end $$;
