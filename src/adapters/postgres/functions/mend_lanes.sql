-- Looks at the first message of the next lanes and wakes the lanes that would sleep past it, or begin behind it. Answers how many, and the last lane
-- looked at; none when it was the last of all. A lane that somebody puts to sleep meanwhile is visited once for nothing.
create or replace function mend_lanes(p_lane uuid, p_limit int) returns table (mended int, next_lane uuid)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_seen int;
  v_lanes uuid[];
  v_dues timestamptz[];
begin
  with recursive head as (
    (select r.lane, r.due_at, 1 as i from ready r where r.lane > p_lane order by r.lane, r.due_at, r.message_id limit 1)
    union all
    select n.lane, n.due_at, h.i + 1 from head h cross join lateral (
      select r.lane, r.due_at from ready r where r.lane > h.lane order by r.lane, r.due_at, r.message_id limit 1) n
    where h.i < p_limit),
  asleep as (
    select h.lane, h.due_at from head h left join lane l on l.lane = h.lane
    where l.lane is null or l.ready_at > greatest(h.due_at, clock_timestamp()) or l.first_due_at > h.due_at)
  select (select count(*) from head), (select (array_agg(h.lane order by h.i desc))[1] from head h),
    (select array_agg(a.lane order by a.lane) from asleep a), (select array_agg(a.due_at order by a.lane) from asleep a)
    into v_seen, p_lane, v_lanes, v_dues;
  if v_lanes is not null then perform wake_lanes(v_lanes, v_dues); end if;
  return query select coalesce(cardinality(v_lanes), 0), case when v_seen = p_limit then p_lane end;
end $$;
