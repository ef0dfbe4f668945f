-- Promises: of the messages of one lane with one ordering key at most one is in `ready`, claimed or under way, and they take
-- their turns in the order they were accepted. And: every fact says who was behind it.

alter table posthaste.event add column actor text;

-- The line of each ordering key. The head is GIVEN to the queue; whoever stands behind it is WAITING, with what its row in
-- `ready` will say. A DEAD head was dead-lettered and holds its place, where its lane says so.
create table posthaste.turn (
  message_id uuid primary key,
  lane uuid not null,
  line text not null,
  nth bigint not null generated always as identity (cache 1),
  standing text not null check (standing in ('WAITING', 'GIVEN', 'DEAD')),
  due_at timestamptz not null,
  version int not null,
  epoch int not null,
  attempt int not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create unique index turn_order on posthaste.turn (lane, line, nth);

-- What a dead-lettered head of a line does: block it, or step aside.
alter table posthaste.lane add column blocks boolean not null default false;

-- Lines change under a lock until commit: who comes in must see whether somebody stands before it, and who goes out
-- whether somebody stands behind. A bounded number of locks, taken in order.
create function posthaste.line_bucket(lane uuid, line text) returns bigint language sql immutable parallel safe
return 7800000 + (hashtext(lane::text || line) & 127);

create function posthaste.move_up(p_lanes uuid[], p_lines text[]) returns void
language plpgsql volatile set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_lanes uuid[];
  v_dues timestamptz[];
begin
  with head as (
    select h.* from (select distinct u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line)) l
      cross join lateral (
        select * from turn t where t.lane = l.lane and t.line = l.line order by t.lane, t.line, t.nth limit 1
      ) h
      where h.standing = 'WAITING'
  ), given as (
    update turn t set standing = 'GIVEN' from head h where t.message_id = h.message_id
    returning t.lane, t.due_at, t.message_id, t.version, t.epoch, t.attempt
  ), put as (
    insert into ready (lane, due_at, message_id, version, epoch, attempt) select * from given on conflict do nothing
  )
  select array_agg(g.lane), array_agg(g.due_at) into v_lanes, v_dues from given g;
  if v_lanes is not null then perform wake_lanes(v_lanes, v_dues); end if;
end $$;

-- Part of posthaste.append, which holds the buckets of the lanes. Moves: `wait` comes or keeps its place, `leave` and
-- `pass` go, `dead` goes or blocks.
create function posthaste.keep_lines(
  p_messages uuid[], p_lanes uuid[], p_lines text[], p_moves text[], p_dues timestamptz[],
  p_versions int[], p_epochs int[], p_attempts int[]
) returns void
language plpgsql volatile set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_bucket bigint;
begin
  if p_messages is null then return; end if;
  for v_bucket in select distinct line_bucket(u.lane, u.line) from unnest(p_lanes, p_lines) u(lane, line) order by 1 loop
    perform pg_advisory_xact_lock(v_bucket);
  end loop;
  insert into turn (message_id, lane, line, standing, due_at, version, epoch, attempt)
    select u.message, u.lane, u.line, 'WAITING', u.due, u.version, u.epoch, u.attempt
    from unnest(p_messages, p_lanes, p_lines, p_moves, p_dues, p_versions, p_epochs, p_attempts) with ordinality
      u(message, lane, line, move, due, version, epoch, attempt, i)
    where u.move = 'wait' order by u.i
  on conflict (message_id) do update set standing = 'WAITING', due_at = excluded.due_at, version = excluded.version,
    epoch = excluded.epoch, attempt = excluded.attempt;
  update turn t set standing = 'DEAD' from unnest(p_messages, p_moves) u(message, move)
    where t.message_id = u.message and u.move = 'dead' and exists (select 1 from lane l where l.lane = t.lane and l.blocks);
  delete from turn t using unnest(p_messages, p_moves) u(message, move)
    where t.message_id = u.message and u.move <> 'wait' and not (u.move = 'dead' and t.standing = 'DEAD');
  perform move_up(p_lanes, p_lines);
end $$;

drop function posthaste.append;

-- Appends many entries, each all or nothing, and answers only for those that were not written:
-- 'conflict' (someone else was first), 'fence' (the batch is no longer claimed), 'gate' (the lane was paused or its circuit
-- changed), 'duplicate' (the key was used before).
-- At most one entry per stream. Times arrive as milliseconds; texts of facts and actors joined by U+001E, which no JSON text and no id contains; bodies and ordering
-- keys as arrays.
create function posthaste.append(
  p_streams uuid[], p_expected int[], p_at_ms bigint[], p_actors text, p_fences bigint[],
  p_fact_entry int[], p_fact_nth int[], p_fact_names text, p_fact_data text,
  p_wait_entry int[], p_wait_lanes uuid[], p_wait_dues_ms bigint[], p_wait_epochs int[], p_wait_attempts int[],
  p_wait_versions int[],
  p_leave_entry int[], p_leave_lanes uuid[], p_leave_dues_ms bigint[],
  p_line_entry int[], p_line_lanes uuid[], p_line_keys text[], p_line_moves text[], p_line_dues_ms bigint[],
  p_line_epochs int[], p_line_attempts int[], p_line_versions int[],
  p_open_entry int[], p_open_bodies text[], p_open_orgs text[], p_open_keys text[], p_open_hashes text[],
  p_response_entry int[], p_response_epochs int[], p_response_attempts int[], p_response_bodies text[],
  p_gates int[], p_gate_lanes uuid[], p_gate_generations int[]
) returns table (stream uuid, verdict text, other uuid, hash text)
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_tx bigint := pg_current_xact_id()::text::bigint;
  v_actors text[] := string_to_array(p_actors, E'\x1e', '');
  v_held bigint[];
  v_refused int[] := '{}';
  v_at timestamptz[] := array(select 'epoch'::timestamptz + ms * interval '1 millisecond' from unnest(p_at_ms) ms);
  v_wait_dues timestamptz[] := array(select 'epoch'::timestamptz + ms * interval '1 millisecond' from unnest(p_wait_dues_ms) ms);
  v_leave_dues timestamptz[] := array(select 'epoch'::timestamptz + ms * interval '1 millisecond' from unnest(p_leave_dues_ms) ms);
  v_shut int[];
  v_names text[];
  v_data text[];
  v_won uuid[];
  v_all boolean;
  v_bucket bigint;
begin
  -- The shared lock on the claim row keeps a takeover out until this is committed.
  if exists (select 1 from unnest(p_fences) f where f is not null) then
    select coalesce(array_agg(c.batch), '{}') into v_held from (
      select batch from claim where batch = any (p_fences) order by batch for key share
    ) c;
    select coalesce(array_agg(u.i), '{}') into v_refused
      from unnest(p_fences) with ordinality u(fence, i) where u.fence is not null and u.fence <> all (v_held);
    return query select p_streams[i], 'fence', null::uuid, null::text from unnest(v_refused) i;
  end if;

  -- p_gates names the gate of each entry by its place in the other two: each lane is looked at once.
  if cardinality(p_gate_lanes) > 0 then
    select coalesce(array_agg(g.nth), '{}') into v_shut
      from unnest(p_gate_lanes, p_gate_generations) with ordinality g(lane, generation, nth)
      where exists (select 1 from lane l where l.lane = g.lane and (l.generation <> g.generation or l.paused));
    if cardinality(v_shut) > 0 then
      select coalesce(array_agg(u.i), '{}') into v_shut
        from unnest(p_gates) with ordinality u(gate, i) where u.gate = any (v_shut) and u.i <> all (v_refused);
      return query select p_streams[i], 'gate', null::uuid, null::text from unnest(v_shut) i;
      v_refused := v_refused || v_shut;
    end if;
  end if;

  -- Sorted, so that two batches with the same keys wait for each other instead of deadlocking.
  if cardinality(p_open_entry) > 0 and exists (select 1 from unnest(p_open_keys) k where k is not null) then
    with asked as (
      select o.entry, o.org, o.key, o.hash from unnest(p_open_entry, p_open_orgs, p_open_keys, p_open_hashes) o(entry, org, key, hash)
      where o.key is not null
    ), taken as (
      insert into idempotency (org_id, key, message_id, request_hash, at)
        select a.org, a.key, p_streams[a.entry], a.hash, v_at[a.entry] from asked a order by a.org, a.key, a.entry
      on conflict do nothing
      returning message_id
    )
    select v_refused || coalesce(array_agg(a.entry), '{}') into v_refused
      from asked a where p_streams[a.entry] not in (select t.message_id from taken t);
    -- A new statement, so it sees the row that the insert above lost to.
    return query
      select p_streams[o.entry], 'duplicate', i.message_id, i.request_hash
      from unnest(p_open_entry, p_open_orgs, p_open_keys) o(entry, org, key)
      join idempotency i on i.org_id = o.org and i.key = o.key
      where o.entry = any (v_refused);
  end if;

  if cardinality(p_wait_lanes) + cardinality(p_line_lanes) > 0 then
    for v_bucket in select distinct lane_bucket(l) from unnest(p_wait_lanes || p_line_lanes) l order by 1 loop
      perform pg_advisory_xact_lock_shared(v_bucket);
    end loop;
  end if;

  -- The first fact of an entry decides it: the primary key refuses the second of two racers, the `exists` an
  -- `expected` that was never true. The others follow the winners.
  v_names := string_to_array(p_fact_names, E'\x1e');
  v_data := string_to_array(p_fact_data, E'\x1e');
  with won as (
    insert into event (stream_id, tx, at, actor, version, name, data)
      select p_streams[f.entry], v_tx, v_at[f.entry], v_actors[f.entry], p_expected[f.entry] + 1, f.name, f.data::json
      from unnest(p_fact_entry, p_fact_nth, v_names, v_data) f(entry, nth, name, data)
      where f.nth = 1 and f.entry <> all (v_refused)
        and (p_expected[f.entry] = 0 or exists (
          select 1 from event e where e.stream_id = p_streams[f.entry] and e.version = p_expected[f.entry]))
    on conflict do nothing
    returning stream_id
  )
  select coalesce(array_agg(w.stream_id), '{}') into v_won from won w;
  v_all := cardinality(v_won) = cardinality(p_streams);
  if cardinality(p_fact_entry) > cardinality(p_streams) then
    insert into event (stream_id, tx, at, actor, version, name, data)
      select p_streams[f.entry], v_tx, v_at[f.entry], v_actors[f.entry], p_expected[f.entry] + f.nth, f.name, f.data::json
      from unnest(p_fact_entry, p_fact_nth, v_names, v_data) f(entry, nth, name, data)
      where f.nth > 1 and (v_all or p_streams[f.entry] = any (v_won));
  end if;

  if cardinality(p_wait_entry) > 0 then
    insert into ready (lane, due_at, message_id, version, epoch, attempt)
      select w.lane, w.due, p_streams[w.entry], w.version, w.epoch, w.attempt
      from unnest(p_wait_entry, p_wait_lanes, v_wait_dues, p_wait_versions, p_wait_epochs, p_wait_attempts)
        w(entry, lane, due, version, epoch, attempt)
      where v_all or p_streams[w.entry] = any (v_won)
    on conflict do nothing;
    perform wake_lanes(p_wait_lanes, v_wait_dues);
  end if;
  if cardinality(p_leave_entry) > 0 then
    delete from ready r using unnest(p_leave_entry, p_leave_lanes, v_leave_dues) l(entry, lane, due)
      where (v_all or p_streams[l.entry] = any (v_won))
        and r.lane = l.lane and r.due_at = l.due and r.message_id = p_streams[l.entry];
  end if;
  if cardinality(p_line_entry) > 0 then
    perform keep_lines(
        array_agg(p_streams[l.entry] order by l.i), array_agg(l.lane order by l.i), array_agg(l.key order by l.i),
        array_agg(l.move order by l.i),
        array_agg('epoch'::timestamptz + l.due_ms * interval '1 millisecond' order by l.i),
        array_agg(l.version order by l.i), array_agg(l.epoch order by l.i), array_agg(l.attempt order by l.i))
      from unnest(p_line_entry, p_line_lanes, p_line_keys, p_line_moves, p_line_dues_ms, p_line_versions, p_line_epochs,
        p_line_attempts) with ordinality l(entry, lane, key, move, due_ms, version, epoch, attempt, i)
      where v_all or p_streams[l.entry] = any (v_won);
  end if;
  if cardinality(p_open_entry) > 0 then
    insert into body (message_id, body)
      select p_streams[o.entry], o.body from unnest(p_open_entry, p_open_bodies) o(entry, body)
      where v_all or p_streams[o.entry] = any (v_won)
    on conflict (message_id) do update set body = excluded.body;
  end if;
  if cardinality(p_response_entry) > 0 then
    insert into response (message_id, epoch, attempt, body)
      select p_streams[r.entry], r.epoch, r.attempt, r.body
      from unnest(p_response_entry, p_response_epochs, p_response_attempts, p_response_bodies) r(entry, epoch, attempt, body)
      where v_all or p_streams[r.entry] = any (v_won)
    on conflict do nothing;
  end if;

  if not v_all then
    -- A key is used up only by the message it opened.
    delete from idempotency i using unnest(p_open_entry, p_open_orgs, p_open_keys) o(entry, org, key)
      where i.org_id = o.org and i.key = o.key and o.entry <> all (v_refused) and p_streams[o.entry] <> all (v_won);
    return query
      select u.stream, 'conflict', null::uuid, null::text
      from unnest(p_streams) with ordinality u(stream, i)
      where u.i <> all (v_refused) and u.stream <> all (v_won);
  end if;
end $$;

drop function posthaste.change_circuit;

-- Answers false, and changes nothing, when the circuit has another generation by now.
create function posthaste.change_circuit(
  p_lane uuid, p_generation int, p_stream uuid, p_names text[], p_data text[],
  p_circuit text, p_failures int, p_shut_until timestamptz, p_in_flight_max int, p_actor text default null
) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  insert into lane (lane, ready_at) values (p_lane, 'infinity') on conflict do nothing;
  update lane l set circuit = p_circuit, generation = p_generation + cardinality(p_names), failures = p_failures,
      shut_until = p_shut_until, in_flight_max = p_in_flight_max, circuit_stream = p_stream
    where l.lane = p_lane and l.generation = p_generation;
  if not found then return false; end if;
  insert into event (stream_id, stream, tx, at, actor, version, name, data)
    select p_stream, 'circuit-' || p_lane, pg_current_xact_id()::text::bigint, date_trunc('milliseconds', clock_timestamp()), p_actor,
      p_generation + f.n, f.name, f.data::json
    from unnest(p_names, p_data) with ordinality f(name, data, n);
  return true;
end $$;

-- The lane does what its destination's settings say, from the same commit on. What waits for a destination that was removed
-- must be able to come to its end, so nothing holds it back.
create or replace function posthaste.instruct_lane() returns trigger
language plpgsql set search_path = posthaste, pg_temp as $$
declare
  v_removed boolean := new.removed_at is not null;
  v_limit int := case when v_removed then null else (new.settings #>> '{rateLimit,limit}')::int end;
  v_period int := case when v_removed then null else (new.settings #>> '{rateLimit,periodMs}')::int end;
  -- Not every kind of destination can be paused.
  v_paused boolean := coalesce((to_jsonb(new) ->> 'paused')::boolean, false) and not v_removed;
  -- Longer than any request: the spare time covers what comes before and after it.
  v_permit int := coalesce((new.settings ->> 'timeoutMs')::int, 30000) + 2000;
  v_blocks boolean := coalesce(new.settings ->> 'onDeadLetter', '') = 'block' and not v_removed;
  v_freed boolean := not v_blocks and exists (select 1 from lane l where l.lane = new.id and l.blocks);
  v_bucket bigint;
  v_lines text[];
begin
  -- Before the lane's row, like everybody else, and all of them: no line may be blocked by an append that still read
  -- the lane as it was.
  if v_freed then
    for v_bucket in select b from generate_series(7800000, 7800127) b order by 1 loop
      perform pg_advisory_xact_lock(v_bucket);
    end loop;
  end if;
  insert into lane as l (lane, ready_at, paused, rate_limit, rate_period_ms, permit_ms, blocks)
    values (new.id, 'infinity', v_paused, v_limit, v_period, v_permit, v_blocks)
  on conflict (lane) do update set
    paused = excluded.paused, rate_limit = excluded.rate_limit, rate_period_ms = excluded.rate_period_ms,
    permit_ms = excluded.permit_ms, blocks = excluded.blocks,
    -- A limit that was changed counts from now on.
    slot_at = case when not v_removed
      and (l.rate_limit, l.rate_period_ms) is not distinct from (excluded.rate_limit, excluded.rate_period_ms)
      then l.slot_at end
  where (l.paused, l.rate_limit, l.rate_period_ms, l.permit_ms, l.blocks)
    is distinct from (excluded.paused, excluded.rate_limit, excluded.rate_period_ms, excluded.permit_ms, excluded.blocks)
    or (v_removed and l.slot_at is not null);
  if v_freed then
    perform pg_advisory_xact_lock_shared(lane_bucket(new.id));
    with aside as (delete from turn t where t.lane = new.id and t.standing = 'DEAD' returning t.line)
    select array_agg(a.line) into v_lines from aside a;
    if v_lines is not null then perform move_up(array_fill(new.id, array[cardinality(v_lines)]), v_lines); end if;
  end if;
  if v_removed then
    perform change_circuit(l.lane, l.generation, l.circuit_stream, array['CircuitReset@1'],
        array['{"reason":"the destination was removed"}'], 'CLOSED', 0, null, null)
      from lane l where l.lane = new.id and l.circuit <> 'CLOSED';
  end if;
  return null;
end $$;
