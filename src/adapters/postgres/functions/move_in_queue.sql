-- Moves messages in the queue as their facts say; a null message is passed over. 'wait' puts it in, 'leave' and 'over' take it out, 'pass' and 'dead'
-- end it for its line only; 'over' and 'dead' are dead letters. `p_lines` is null where no message has an ordering key. Answers whether there may be
-- more to claim.
-- All writers lock in this order, each kind sorted: batches, keys, streams, buckets of lanes, buckets of lines, rows of `ready`, rows of `lane`. So
-- none waits in a circle.
create or replace function move_in_queue(
  p_messages uuid[], p_moves text[], p_lanes uuid[], p_lines text[], p_dues_ms bigint[], p_versions int[], p_epochs int[],
  p_attempts int[]
) returns boolean
language plpgsql volatile as $$
declare
  v_dues timestamptz[] := array(select 'epoch'::timestamptz + ms * interval '1 millisecond' from unnest(p_dues_ms) ms);
  v_bucket bigint;
  v_lanes uuid[];
  v_lane_dues timestamptz[];
begin
  for v_bucket in
    select lane_buckets(array(
      select u.lane from unnest(p_moves, p_lanes, p_lines) u(move, lane, line) where u.move = 'wait' or u.line is not null))
  loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  if p_lines is not null then
    select array_agg(c.lane), array_agg(c.due) into v_lanes, v_lane_dues from (
        select array_agg(u.message order by u.i) as messages, array_agg(u.lane order by u.i) as lanes,
          array_agg(u.line order by u.i) as lines, array_agg(u.move order by u.i) as moves, array_agg(u.due order by u.i) as dues,
          array_agg(u.version order by u.i) as versions, array_agg(u.epoch order by u.i) as epochs,
          array_agg(u.attempt order by u.i) as attempts
        from unnest(p_messages, p_moves, p_lanes, p_lines, v_dues, p_versions, p_epochs, p_attempts) with ordinality
          u(message, move, lane, line, due, version, epoch, attempt, i)
        where u.line is not null and u.message is not null
      ) m
      cross join lateral change_lines(m.messages, m.lanes, m.lines, m.moves, m.dues, m.versions, m.epochs, m.attempts) c;
  end if;
  if 'leave' = any (p_moves) or 'over' = any (p_moves) then
    delete from ready r using unnest(p_messages, p_moves, p_lanes, v_dues) u(message, move, lane, due)
      where u.move in ('leave', 'over') and r.lane = u.lane and r.due_at = u.due and r.message_id = u.message;
  end if;
  if 'wait' = any (p_moves) then
    insert into ready (lane, due_at, message_id, version, epoch, attempt)
      select u.lane, u.due, u.message, u.version, u.epoch, u.attempt
      from unnest(p_messages, p_moves, p_lanes, p_lines, v_dues, p_versions, p_epochs, p_attempts)
        u(message, move, lane, line, due, version, epoch, attempt)
      where u.move = 'wait' and u.line is null and u.message is not null
    on conflict do nothing;
    select v_lanes || array_agg(u.lane), v_lane_dues || array_agg(u.due) into v_lanes, v_lane_dues
      from unnest(p_moves, p_lanes, p_lines, v_dues) u(move, lane, line, due)
      where u.move = 'wait' and u.line is null;
  end if;
  if v_lanes is null then return false; end if;
  perform wake_lanes(v_lanes, v_lane_dues);
  return true;
end $$;
