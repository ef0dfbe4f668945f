create or replace function advance_lines(p_lanes uuid[], p_lines text[]) returns void
language plpgsql volatile as $$
declare
  v_lanes uuid[];
  v_dues timestamptz[];
begin
  with head as (
    select h.* from (select distinct u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line)) l
      cross join lateral (
        select * from line_entry t where t.lane = l.lane and t.line = l.line order by t.lane, t.line, t.nth limit 1
      ) h
      where h.state = 'WAITING'
  ), given as (
    update line_entry t set state = 'GIVEN' from head h where t.message_id = h.message_id
    returning t.lane, t.due_at, t.message_id, t.version, t.epoch, t.attempt
  ), put as (
    insert into ready (lane, due_at, message_id, version, epoch, attempt) select * from given on conflict do nothing
  )
  select array_agg(g.lane), array_agg(g.due_at) into v_lanes, v_dues from given g;
  if v_lanes is not null then perform wake_lanes(v_lanes, v_dues); end if;
end $$;
