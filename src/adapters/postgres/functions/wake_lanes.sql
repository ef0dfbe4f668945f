-- Makes lanes visited for messages that came, from their due times on. Rows of lanes are locked last, in order, once in a transaction. A lane that is
-- awake, and begins no later, is not locked: the caller holds its bucket, so neither changes meanwhile. Each lane is found by its key: an event may
-- come to thousands, and a join would compare each with each.
create or replace function wake_lanes(p_lanes uuid[], p_dues timestamptz[]) returns void
language plpgsql volatile as $$
begin
  insert into lane as l (lane, ready_at, first_due_at)
    select w.lane, w.due, w.due
    from (select u.lane, min(u.due) as due from unnest(p_lanes, p_dues) u(lane, due) group by u.lane) w
    left join lateral (select greatest(k.ready_at, k.first_due_at) as from_at from lane k where k.lane = w.lane limit 1) k on true
    where k.from_at is null or k.from_at > w.due
    order by w.lane
  on conflict (lane) do update
    set ready_at = least(l.ready_at, excluded.ready_at), first_due_at = least(l.first_due_at, excluded.first_due_at)
    where l.ready_at > excluded.ready_at or l.first_due_at > excluded.first_due_at;
end $$;
