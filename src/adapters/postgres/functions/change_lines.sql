-- Part of move_in_queue, which holds the buckets of the lanes and wakes those that are answered. `wait` enters a line or keeps its place, `leave` and
-- `pass` go, `over` and `dead` go or block.
create or replace function change_lines(
  p_messages uuid[], p_lanes uuid[], p_lines text[], p_moves text[], p_dues timestamptz[],
  p_versions int[], p_epochs int[], p_attempts int[]
) returns table (lane uuid, due timestamptz)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_bucket bigint;
begin
  if p_messages is null then return; end if;
  for v_bucket in select distinct line_bucket(u.lane, u.line) from unnest(p_lanes, p_lines) u(lane, line) order by 1 loop
    perform pg_advisory_xact_lock(v_bucket);
  end loop;
  insert into line_entry (message_id, lane, line, state, due_at, version, epoch, attempt)
    select u.message, u.lane, u.line, 'WAITING', u.due, u.version, u.epoch, u.attempt
    from unnest(p_messages, p_lanes, p_lines, p_moves, p_dues, p_versions, p_epochs, p_attempts) with ordinality
      u(message, lane, line, move, due, version, epoch, attempt, i)
    where u.move = 'wait' order by u.i
  on conflict (message_id) do update set state = 'WAITING', due_at = excluded.due_at, version = excluded.version,
    epoch = excluded.epoch, attempt = excluded.attempt;
  update line_entry t set state = 'DEAD' from unnest(p_messages, p_moves) u(message, move)
    where t.message_id = u.message and u.move in ('over', 'dead') and exists (select 1 from lane l where l.lane = t.lane and l.blocks);
  delete from line_entry t using unnest(p_messages, p_moves) u(message, move)
    where t.message_id = u.message and u.move <> 'wait' and not (u.move in ('over', 'dead') and t.state = 'DEAD');
  return query select a.lane, a.due from advance_lines(p_lanes, p_lines) a;
end $$;
