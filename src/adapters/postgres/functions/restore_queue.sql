-- Puts messages where their facts up to `p_read` say: 'Waiting' in the lane or at the end of the line, 'UnderWay' in a batch whose lease ran out,
-- 'Dead' in a line that it blocks, 'Out' in no line. Un-parks them and answers how many were parked. A message in a batch, or with later facts,
-- stays; one in its line keeps its place. A second row of a message stays in its lane: a worker drops it. Locks in the order of move_in_queue.
create or replace function restore_queue(
  p_messages uuid[], p_read int[], p_places text[], p_lanes uuid[], p_lines text[], p_dues_ms bigint[], p_versions int[], p_epochs int[],
  p_attempts int[]
) returns int
language plpgsql volatile as $$
declare
  v_dues timestamptz[] := array(
    select 'epoch'::timestamptz + u.ms * interval '1 millisecond' from unnest(p_dues_ms) with ordinality u(ms, i) order by u.i);
  v_bucket bigint;
  v_lanes uuid[];
  v_lines text[];
  v_movable uuid[];
  v_unparked int;
begin
  select coalesce(array_agg(l.lane), '{}'), coalesce(array_agg(l.line), '{}') into v_lanes, v_lines from (
    select u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line) where u.line is not null
    union select t.lane, t.line from line_entry t where t.message_id = any (p_messages)) l;
  for v_bucket in select lane_buckets(v_lanes || array(select l from unnest(p_lanes) l where l is not null)) loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  for v_bucket in select distinct line_bucket(u.lane, u.line) from unnest(v_lanes, v_lines) u(lane, line) order by 1 loop
    perform pg_advisory_xact_lock(v_bucket);
  end loop;
  v_movable := array(
    select u.message from unnest(p_messages, p_read, p_versions) u(message, read, version)
    where not exists (select from event e where e.stream_id = u.message and e.version = u.read + 1)
      and not exists (select from claim c cross join unnest(c.messages, c.versions) h(id, version)
        where h.id = u.message and h.version >= u.version));

  delete from parked p where p.stream = any (array(select 'message-' || m from unnest(v_movable) m));
  get diagnostics v_unparked = row_count;
  delete from line_entry t using unnest(p_messages, p_places) u(message, place)
    where u.place = 'Out' and t.message_id = u.message and u.message = any (v_movable);
  insert into line_entry as t (message_id, lane, line, state, due_at, version, epoch, attempt)
    select u.message, u.lane, u.line, case u.place when 'Dead' then 'DEAD' when 'UnderWay' then 'GIVEN' else 'WAITING' end,
      u.due, u.version, u.epoch, u.attempt
    from unnest(p_messages, p_places, p_lanes, p_lines, v_dues, p_versions, p_epochs, p_attempts) with ordinality
      u(message, place, lane, line, due, version, epoch, attempt, i)
    where u.message = any (v_movable) and u.line is not null
      and (u.place <> 'Dead' or exists (select from lane l where l.lane = u.lane and l.blocks))
    order by u.i
  on conflict (message_id) do update set state = excluded.state, due_at = excluded.due_at, version = excluded.version,
    epoch = excluded.epoch, attempt = excluded.attempt;
  insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
    select gen_random_uuid(), 'restored', clock_timestamp(), array_agg(u.message), array_agg(u.lane), array_agg(u.due),
      array_agg(u.version), array_agg(u.epoch), array_agg(u.attempt)
    from unnest(p_messages, p_places, p_lanes, v_dues, p_versions, p_epochs, p_attempts) u(message, place, lane, due, version, epoch, attempt)
    where u.place = 'UnderWay' and u.message = any (v_movable) having count(*) > 0;
  insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select u.lane, u.due, u.message, u.version, u.epoch, u.attempt
    from unnest(p_messages, p_places, p_lanes, p_lines, v_dues, p_versions, p_epochs, p_attempts)
      u(message, place, lane, line, due, version, epoch, attempt)
    where u.place = 'Waiting' and u.line is null and u.message = any (v_movable)
  on conflict do nothing;
  delete from ready r
    using unnest(p_messages, p_places, p_lanes, v_dues, p_versions) u(message, place, lane, due, version)
    where u.place = 'Waiting' and (r.lane, r.due_at, r.message_id) = (u.lane, u.due, u.message)
      and exists (select from claim c cross join unnest(c.messages, c.versions) h(id, version) where h.id = u.message and h.version >= u.version);
  delete from ready r using line_entry t
    where t.message_id = any (v_movable) and t.state = 'WAITING' and (r.lane, r.due_at, r.message_id) = (t.lane, t.due_at, t.message_id)
      and exists (select from line_entry b where b.lane = t.lane and b.line = t.line and b.nth < t.nth);
  perform a.lane from advance_lines(v_lanes, v_lines) a;
  perform wake_lanes(array_agg(u.lane), array_agg(u.due))
    from unnest(p_places, p_lanes, v_dues) u(place, lane, due) where u.place = 'Waiting' having count(*) > 0;
  return v_unparked;
end $$;
