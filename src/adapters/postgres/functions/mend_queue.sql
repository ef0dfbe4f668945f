-- Puts messages where their facts say: 'waiting' in the lane or in the line, 'under way' in a batch whose lease has run out,
-- 'out' nowhere. Each place was folded from the facts up to `p_versions`, and holds only as long as no fact is added: what moves
-- meanwhile is left alone ('changed'). What is right stays as it is ('fine').
-- Locks are taken in the order of move_in_queue. A fact that is being added while this runs is not seen yet, and waits for the line
-- or comes later: then it finds what was mended here and goes on from there. All it can leave behind is a row of a lane whose
-- version is over, which a worker drops when it is due.
create or replace function mend_queue(
  p_messages uuid[], p_versions int[], p_places text[], p_dead boolean[], p_lanes uuid[], p_lines text[],
  p_dues_ms bigint[], p_row_versions int[], p_epochs int[], p_attempts int[], p_strays boolean
) returns table (message uuid, verdict text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_dues timestamptz[] := array(
    select 'epoch'::timestamptz + u.ms * interval '1 millisecond' from unnest(p_dues_ms) with ordinality u(ms, i) order by u.i);
  v_same uuid[];
  v_held uuid[];
  v_some uuid[];
  v_mended uuid[] := '{}';
  v_lanes uuid[];
  v_lines text[];
  v_awake uuid[];
  v_awake_dues timestamptz[];
  v_bucket bigint;
  v_missing record;
  v_behind bigint;
begin
  -- The lines they should stand in, and those they do.
  select array_agg(l.lane), array_agg(l.line) into v_lanes, v_lines from (
    select u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line) where u.line is not null
    union select t.lane, t.line from line_entry t where t.message_id = any (p_messages)) l;
  for v_bucket in
    select distinct lane_bucket(l) from unnest(p_lanes || v_lanes) l where l is not null order by 1
  loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  for v_bucket in select distinct line_bucket(u.lane, u.line) from unnest(v_lanes, v_lines) u(lane, line) order by 1 loop
    perform pg_advisory_xact_lock(v_bucket);
  end loop;

  v_same := array(
    select u.message from unnest(p_messages, p_versions) u(message, version)
    where exists (select 1 from event e where e.stream_id = u.message and e.version = u.version)
      and not exists (select 1 from event e where e.stream_id = u.message and e.version = u.version + 1));
  -- A batch names messages it has settled until it is released: the version tells whether one is still in its hands.
  v_held := array(
    select m.id from claim c cross join unnest(c.messages, c.versions) m(id, version)
    join unnest(p_messages, p_row_versions) u(message, version) on u.message = m.id and m.version >= u.version);

  -- Where a message has no place in a line, or another one.
  with gone as (
    delete from line_entry t using unnest(p_messages, p_places, p_dead, p_lanes, p_lines) u(message, place, dead, lane, line)
    where t.message_id = u.message and u.message = any (v_same)
      and case when u.place = 'out' then not (u.dead and t.state = 'DEAD')
        else u.line is null or (t.lane, t.line) is distinct from (u.lane, u.line) end
    returning t.message_id)
  select coalesce(array_agg(g.message_id), '{}') into v_some from gone g;
  v_mended := v_mended || v_some;

  -- A message comes before those that were accepted after it, and behind everybody when it was replayed; one that was given
  -- to the queue stays where it is.
  for v_missing in
    select u.* from unnest(p_messages, p_places, p_lanes, p_lines, v_dues, p_row_versions, p_epochs, p_attempts)
        u(message, place, lane, line, due, version, epoch, attempt)
      where u.message = any (v_same) and u.place <> 'out' and u.line is not null
        and not exists (select 1 from line_entry t where t.message_id = u.message)
      order by u.epoch, u.message
  loop
    v_behind := (
      select min(t.nth) from line_entry t where t.lane = v_missing.lane and t.line = v_missing.line and t.state = 'WAITING'
        and v_missing.epoch = 1 and (t.epoch > 1 or t.message_id > v_missing.message));
    insert into line_entry (message_id, lane, line, state, due_at, version, epoch, attempt)
      values (v_missing.message, v_missing.lane, v_missing.line,
        case v_missing.place when 'waiting' then 'WAITING' else 'GIVEN' end,
        v_missing.due, v_missing.version, v_missing.epoch, v_missing.attempt);
    if v_behind is not null then
      update line_entry t set nth = n.nth
        from (select b.message_id, nextval('line_entry_nth') as nth from (
          select t.message_id from line_entry t
          where t.lane = v_missing.lane and t.line = v_missing.line and t.nth >= v_behind and t.message_id <> v_missing.message
          order by t.nth) b) n
        where t.message_id = n.message_id;
    end if;
    v_mended := v_mended || v_missing.message;
  end loop;
  with put_right as (
    update line_entry t set state = case u.place when 'waiting' then 'WAITING' else 'GIVEN' end,
        due_at = u.due, version = u.version, epoch = u.epoch, attempt = u.attempt
      from unnest(p_messages, p_places, v_dues, p_row_versions, p_epochs, p_attempts) u(message, place, due, version, epoch, attempt)
      where t.message_id = u.message and u.message = any (v_same)
        and (u.place <> 'out' and t.state = 'DEAD' or u.place = 'under way' and t.state = 'WAITING')
    returning t.message_id)
  select coalesce(array_agg(p.message_id), '{}') into v_some from put_right p;
  v_mended := v_mended || v_some;
  if v_lanes is not null then
    select array_agg(a.lane), array_agg(a.due) into v_awake, v_awake_dues from advance_lines(v_lanes, v_lines) a;
  end if;

  with given as (
    insert into ready as r (lane, due_at, message_id, version, epoch, attempt)
      select u.lane, u.due, u.message, u.version, u.epoch, u.attempt
      from unnest(p_messages, p_places, p_lanes, p_lines, v_dues, p_row_versions, p_epochs, p_attempts)
        u(message, place, lane, line, due, version, epoch, attempt)
      where u.message = any (v_same) and u.place = 'waiting' and u.message <> all (v_held)
        and (u.line is null or exists (
          select 1 from line_entry t where t.message_id = u.message and t.state = 'GIVEN'))
      order by u.lane, u.due, u.message
    on conflict (lane, due_at, message_id) do update
      set version = excluded.version, epoch = excluded.epoch, attempt = excluded.attempt
      where r.version < excluded.version or (r.epoch, r.attempt) <> (excluded.epoch, excluded.attempt)
    returning r.message_id, r.lane, r.due_at)
  select coalesce(array_agg(g.message_id), '{}'), v_awake || array_agg(g.lane), v_awake_dues || array_agg(g.due_at)
    into v_some, v_awake, v_awake_dues from given g;
  v_mended := v_mended || v_some;

  -- Its attempt is closed as after any crash.
  v_some := array(select u.message from unnest(p_messages, p_places) u(message, place)
    where u.message = any (v_same) and u.place = 'under way' and u.message <> all (v_held));
  if cardinality(v_some) > 0 then
    insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
      select gen_random_uuid(), 'nobody', clock_timestamp(), array_agg(u.message), array_agg(u.lane), array_agg(u.due),
        array_agg(u.version), array_agg(u.epoch), array_agg(u.attempt)
      from unnest(p_messages, p_lanes, v_dues, p_row_versions, p_epochs, p_attempts) u(message, lane, due, version, epoch, attempt)
      where u.message = any (v_some);
    v_mended := v_mended || v_some;
  end if;

  -- No index leads from a message to its rows in lanes: this reads them all, so it runs where something was wrong.
  if p_strays or cardinality(v_mended) > 0 then
  with stray as (
    delete from ready r using unnest(p_messages, p_versions, p_places, p_lanes, v_dues) u(message, version, place, lane, due)
    where r.message_id = u.message and u.message = any (v_same) and r.version <= u.version
      and (u.place <> 'waiting' or (r.lane, r.due_at) <> (u.lane, u.due) or u.message = any (v_held)
        or exists (select 1 from line_entry t where t.message_id = u.message and t.state = 'WAITING'))
    returning r.message_id)
  select coalesce(array_agg(s.message_id), '{}') into v_some from stray s;
  v_mended := v_mended || v_some;
  end if;

  if v_awake is not null then perform wake_lanes(v_awake, v_awake_dues); end if;

  delete from set_aside s using unnest(p_messages, p_places) u(message, place)
    where s.message_id = u.message and u.message = any (v_same) and u.place = 'out';
  update set_aside s set again_at = null, tried_at = clock_timestamp()
    where s.message_id = any (v_same) and s.again_at is not null;

  return query select m, case when m <> all (v_same) then 'changed' when m = any (v_mended) then 'mended' else 'fine' end
    from unnest(p_messages) m;
end $$;
