-- Gives up places whose fact has not come for a while: whoever wanted them is gone, or will not be answered in time. A fact that
-- comes later stands at the end of its line. `due_at` of a reserved place says when it was reserved. Answers whether there may be
-- more to claim now.
create or replace function expire_reservations(p_after_ms int) returns boolean language plpgsql volatile as $$
declare
  v_lanes uuid[];
  v_lines text[];
  v_dues timestamptz[];
  v_before timestamptz := clock_timestamp() - p_after_ms * interval '1 millisecond';
begin
  select array_agg(l.lane), array_agg(l.line) into v_lanes, v_lines from (
    select distinct t.lane, t.line from line_entry t where t.state = 'RESERVED' and t.due_at < v_before) l;
  if v_lanes is null then return false; end if;
  perform lock_lines(v_lanes, v_lines);
  delete from line_entry t using unnest(v_lanes, v_lines) u(lane, line)
    where t.lane = u.lane and t.line = u.line and t.state = 'RESERVED' and t.due_at < v_before;
  select array_agg(a.lane), array_agg(a.due) into v_lanes, v_dues from advance_lines(v_lanes, v_lines) a;
  if v_lanes is null then return false; end if;
  perform wake_lanes(v_lanes, v_dues);
  return true;
end $$;
