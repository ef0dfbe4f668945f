-- Looks at the heads of the next lines and gives to the queue those that nobody gave. Answers how many, and the last line looked
-- at; none when it was the last of all.
create or replace function mend_lines(p_lane uuid, p_line text, p_limit int)
returns table (mended int, next_lane uuid, next_line text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_seen int;
  v_lanes uuid[];
  v_lines text[];
  v_dues timestamptz[];
begin
  -- From line to line by the index: however many stand in one, it costs one look.
  with recursive head as (
    (select t.lane, t.line, t.state, 1 as i from line_entry t where (t.lane, t.line) > (p_lane, p_line)
      order by t.lane, t.line, t.nth limit 1)
    union all
    select n.lane, n.line, n.state, h.i + 1 from head h cross join lateral (
      select t.lane, t.line, t.state from line_entry t where (t.lane, t.line) > (h.lane, h.line)
      order by t.lane, t.line, t.nth limit 1) n
    where h.i < p_limit)
  select count(*), array_agg(h.lane) filter (where h.state = 'WAITING'), array_agg(h.line) filter (where h.state = 'WAITING'),
    (array_agg(h.lane order by h.i desc))[1], (array_agg(h.line order by h.i desc))[1]
    into v_seen, v_lanes, v_lines, p_lane, p_line from head h;
  if v_lanes is not null then
    perform lock_lines(v_lanes, v_lines);
    select array_agg(a.lane), array_agg(a.due) into v_lanes, v_dues from advance_lines(v_lanes, v_lines) a;
    if v_lanes is not null then perform wake_lanes(v_lanes, v_dues); end if;
  end if;
  return query select coalesce(cardinality(v_lanes), 0), case when v_seen = p_limit then p_lane end,
    case when v_seen = p_limit then p_line end;
end $$;
