-- Promises: a fact is inserted once and never changed; what waits, what is claimed and what was said to a caller
-- agree with the facts at every commit. Everything here is written by posthaste.append and the claim functions.

-- The ground truth. (stream_id, version) is the only optimistic lock. Readers of all streams order by (tx, position)
-- and stay below pg_snapshot_xmin: a sequence alone would let them step over a transaction that commits late.
create sequence posthaste.event_position cache 1000;
create table posthaste.event (
  stream_id uuid not null,
  tx bigint not null,
  position bigint not null default nextval('posthaste.event_position'),
  at timestamptz not null,
  version int not null,
  name text not null,
  data json not null,
  primary key (stream_id, version)
);
create index event_order on posthaste.event (tx, position);

-- What may be erased lives beside the facts.
create table posthaste.body (message_id uuid primary key, body text not null);
create table posthaste.response (
  message_id uuid not null,
  epoch int not null,
  attempt int not null,
  body text not null,
  primary key (message_id, epoch, attempt)
);

create table posthaste.idempotency (
  org_id text not null,
  key text not null,
  message_id uuid not null,
  request_hash text not null,
  at timestamptz not null,
  primary key (org_id, key)
);

-- Only what waits. Inserted and deleted, never updated; its one index is the claim order.
create table posthaste.ready (
  lane uuid not null,
  due_at timestamptz not null,
  message_id uuid not null,
  version int not null,
  epoch int not null,
  attempt int not null,
  primary key (lane, due_at, message_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- When a lane is worth visiting. ready_at is never later than its first due message (see posthaste.settle_lanes); what its
-- destination allows comes on top: nothing while it is paused or its circuit is open or held, no more than its rate
-- limit. Lanes that have nothing to hand out now lie beyond now() in lane_turn and are not touched. A visited lane
-- goes to the back. A healthy lane is written by its visits alone.
create table posthaste.lane (
  lane uuid primary key,
  ready_at timestamptz not null,
  -- Set by whoever knows the destination's settings.
  paused boolean not null default false,
  rate_limit int,
  rate_period_ms int,
  permit_ms int not null default 32000,
  -- When the rate limit makes a visit worthwhile again.
  slot_at timestamptz,
  -- Where the circuit stands. generation is the number of facts on its stream, and changes with them only.
  circuit text not null default 'CLOSED' check (circuit in ('CLOSED', 'OPEN', 'HALF_OPEN', 'HELD')),
  generation int not null default 0,
  failures int not null default 0,
  shut_until timestamptz,
  in_flight_max int,
  circuit_stream uuid,
  visit_at timestamptz not null generated always as (
    case when paused or circuit = 'HELD' then 'infinity'::timestamptz else greatest(ready_at, shut_until, slot_at) end
  ) stored
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index lane_turn on posthaste.lane (visit_at);

-- One row per claimed batch: the lease and, by its removal or renaming, the fence.
create sequence posthaste.batch;
create table posthaste.claim (
  batch bigint primary key,
  worker text not null,
  lease_until timestamptz not null,
  messages uuid[] not null,
  lanes uuid[] not null,
  dues timestamptz[] not null,
  versions int[] not null,
  epochs int[] not null,
  attempts int[] not null
) with (fillfactor = 50);

-- Who puts a message into a lane holds the lane's bucket shared until commit; who wants to send the lane to sleep
-- takes it exclusively and looks again. So no message is put in while nobody would wake the lane for it.
create function posthaste.lane_bucket(lane uuid) returns bigint language sql immutable parallel safe
return 7700000 + (hashtext(lane::text) & 63);

create function posthaste.wake_lanes(p_lanes uuid[], p_dues timestamptz[]) returns void
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  perform 1 from lane l join unnest(p_lanes, p_dues) w(lane, due) on l.lane = w.lane
    where l.ready_at > w.due order by l.lane for update of l;
  if found then
    update lane l set ready_at = w.due
      from (select u.lane, min(u.due) as due from unnest(p_lanes, p_dues) u(lane, due) group by u.lane) w
      where l.lane = w.lane and l.ready_at > w.due;
  end if;
  insert into lane (lane, ready_at)
    select w.lane, min(w.due) from unnest(p_lanes, p_dues) w(lane, due)
    where not exists (select 1 from lane l where l.lane = w.lane)
    group by w.lane order by w.lane
  on conflict (lane) do update set ready_at = least(posthaste.lane.ready_at, excluded.ready_at);
end $$;

-- Appends many entries, each all or nothing, and answers only for those that were not written:
-- 'conflict' (someone else was first), 'fence' (the batch is no longer claimed), 'gate' (the lane was paused or its circuit
-- changed), 'duplicate' (the key was used before).
-- At most one entry per stream. Times arrive as milliseconds, texts of facts joined by U+001E, which no JSON text and no id contains; bodies as arrays.
create function posthaste.append(
  p_streams uuid[], p_expected int[], p_at_ms bigint[], p_fences bigint[],
  p_fact_entry int[], p_fact_nth int[], p_fact_names text, p_fact_data text,
  p_wait_entry int[], p_wait_lanes uuid[], p_wait_dues_ms bigint[], p_wait_epochs int[], p_wait_attempts int[],
  p_wait_versions int[],
  p_leave_entry int[], p_leave_lanes uuid[], p_leave_dues_ms bigint[],
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

  if cardinality(p_wait_lanes) > 0 then
    for v_bucket in select distinct lane_bucket(l) from unnest(p_wait_lanes) l order by 1 loop
      perform pg_advisory_xact_lock_shared(v_bucket);
    end loop;
  end if;

  -- The first fact of an entry decides it: the primary key refuses the second of two racers, the `exists` an
  -- `expected` that was never true. The others follow the winners.
  v_names := string_to_array(p_fact_names, E'\x1e');
  v_data := string_to_array(p_fact_data, E'\x1e');
  with won as (
    insert into event (stream_id, tx, at, version, name, data)
      select p_streams[f.entry], v_tx, v_at[f.entry], p_expected[f.entry] + 1, f.name, f.data::json
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
    insert into event (stream_id, tx, at, version, name, data)
      select p_streams[f.entry], v_tx, v_at[f.entry], p_expected[f.entry] + f.nth, f.name, f.data::json
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

-- Puts lanes where they belong after a visit: to the back while they have more, to sleep until their next message otherwise.
-- All in one update: one per lane cost 10 µs more each, for each sets up the generated column anew. Part of
-- posthaste.claim_due, and planned under its settings.
create function posthaste.settle_lanes(p_lanes uuid[], p_drained boolean[]) returns void language plpgsql volatile as $$
declare v_asleep boolean[];
begin
  -- Two statements, so that the second one sees what was put in before the lock was taken.
  select array_agg(case when s.drained then pg_try_advisory_xact_lock(lane_bucket(s.lane)) else false end order by s.nth) into v_asleep
    from unnest(p_lanes, p_drained) with ordinality s(lane, drained, nth);
  update lane l set ready_at = case when not s.asleep then clock_timestamp() else coalesce(
      (select r.due_at from ready r where r.lane = s.lane order by r.lane, r.due_at, r.message_id limit 1), 'infinity') end
    from unnest(p_lanes, v_asleep) s(lane, asleep) where l.lane = s.lane;
end $$;

-- Takes due messages out of the queue under one lease. Lanes take turns, each gives an even share of the batch, and no more
-- than its destination allows. A lane whose circuit is open or half open is visited only when its silence, or the permit
-- of the probe before, is over: it gives one message and the permit for it, with the fact that says so. The plan is
-- pinned: with stale statistics the planner sorted a whole backlog although the index has the right order.
create function posthaste.claim_due(
  p_worker text, p_limit int, p_per_lane int, p_room_lanes uuid[], p_rooms int[], p_lease_ms int
) returns table (batch bigint, messages text)
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_lanes uuid[];
  v_lane uuid;
  v_share int;
  v_take int;
  v_n int;
  v_left int := p_limit;
  v_messages uuid[] := '{}'; v_message_lanes uuid[] := '{}'; v_dues timestamptz[] := '{}';
  v_versions int[] := '{}'; v_epochs int[] := '{}'; v_attempts int[] := '{}';
  m uuid[]; d timestamptz[]; v int[]; e int[]; a int[];
  v_visited uuid[] := '{}'; v_drained boolean[] := '{}';
  v_batch bigint;
  -- Of lanes about which there is something to say, which healthy lanes are not; each of their messages names its entry.
  v_odd boolean[];
  v_row posthaste.lane;
  v_generations int[] := '{}'; v_cares text[] := '{}'; v_limited boolean[] := '{}'; v_in_flight int[] := '{}';
  v_passes int[] := '{}';
  v_now timestamptz;
  v_interval float8; v_burst float8; v_lead float8; v_end timestamptz;
begin
  select array_agg(t.lane), array_agg(t.odd) into v_lanes, v_odd from (
    select l.lane, l.generation > 0 or l.failures > 0 or l.rate_limit is not null as odd from lane l
    where l.visit_at <= clock_timestamp()
      and not exists (select 1 from unnest(p_room_lanes, p_rooms) full_lane(id, room) where full_lane.id = l.lane and full_lane.room = 0)
    order by l.visit_at limit least(64, p_limit) for update of l skip locked
  ) t;
  if v_lanes is null then return; end if;

  for v_nth in 1 .. cardinality(v_lanes) loop
    exit when v_left = 0;
    v_lane := v_lanes[v_nth];
    -- What earlier lanes did not use goes to the later ones.
    v_share := ceil(v_left::numeric / (cardinality(v_lanes) - v_nth + 1));
    v_take := least(v_left, v_share,
      coalesce((select r.room from unnest(p_room_lanes, p_rooms) r(id, room) where r.id = v_lane limit 1), p_per_lane));
    if v_odd[v_nth] then
      select * into v_row from lane l where l.lane = v_lane;
      if v_row.circuit <> 'CLOSED' then v_take := 1;
      elsif v_row.in_flight_max is not null then v_take := least(v_take, v_row.in_flight_max);
      end if;
      if v_row.rate_limit is not null then
        -- The same arithmetic as src/domain/rateLimit.ts, where it is explained.
        v_now := clock_timestamp();
        v_interval := v_row.rate_period_ms::float8 / v_row.rate_limit;
        v_burst := greatest(1, floor(25 / v_interval));
        v_lead := (v_burst - ceil(v_burst / 2)) * v_interval;
        v_end := greatest(v_row.slot_at + v_lead * interval '1 millisecond', v_now - interval '20 milliseconds');
        v_take := least(v_take, floor(extract(epoch from v_now - v_end) * 1000 / v_interval + 0.01) + v_burst);
        continue when v_take < 1;
      end if;
    end if;
    with taken as (
      delete from ready where ctid = any (array(
        select r.ctid from ready r where r.lane = v_lane and r.due_at <= clock_timestamp()
        order by r.lane, r.due_at, r.message_id limit v_take for update skip locked))
      returning message_id, due_at, version, epoch, attempt
    )
    select coalesce(array_agg(message_id), '{}'), array_agg(due_at), array_agg(version), array_agg(epoch), array_agg(attempt)
      into m, d, v, e, a from (select * from taken order by due_at, message_id) t;
    v_n := cardinality(m);
    if v_n > 0 then
      v_messages := v_messages || m; v_dues := v_dues || d; v_versions := v_versions || v;
      v_epochs := v_epochs || e; v_attempts := v_attempts || a;
      v_message_lanes := v_message_lanes || array_fill(v_lane, array[v_n]);
      v_left := v_left - v_n;
      if v_odd[v_nth] then
        if v_row.rate_limit is not null then
          update lane l set slot_at = v_end + (v_n * v_interval - v_lead) * interval '1 millisecond' where l.lane = v_lane;
        end if;
        if v_row.circuit <> 'CLOSED' then
          v_row.generation := v_row.generation + 1;
          perform permit_probe(v_row, m[1]);
        end if;
        v_generations := v_generations || v_row.generation;
        v_cares := v_cares || case
          when v_row.circuit <> 'CLOSED' then 'probe'
          when v_row.failures > 0 or v_row.in_flight_max is not null then 'watched' end;
        v_limited := v_limited || (v_row.rate_limit is not null);
        v_in_flight := v_in_flight || case when v_row.circuit <> 'CLOSED' then 1 else v_row.in_flight_max end;
        v_passes := v_passes || array_fill(0, array[cardinality(v_messages) - v_n - cardinality(v_passes)])
          || array_fill(cardinality(v_generations), array[v_n]);
      end if;
    end if;
    v_visited := v_visited || v_lane;
    v_drained := v_drained || (v_n < v_take);
  end loop;
  perform settle_lanes(v_visited, v_drained);

  if cardinality(v_messages) = 0 then return; end if;
  v_batch := nextval('posthaste.batch');
  insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
    values (v_batch, p_worker, clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0),
      v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts);
  -- One row for the batch: reading a field of a row costs the client as much as reading it out of one document.
  return query
    select v_batch, json_agg(json_build_array(c.message, c.lane, (extract(epoch from c.due) * 1000)::bigint, c.version,
      c.epoch, c.attempt, q.name, q.data, b.body,
      v_generations[c.pass], v_cares[c.pass], nullif(v_limited[c.pass], false), v_in_flight[c.pass]) order by c.i)::text
    from unnest(v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts, v_passes) with ordinality
      c(message, lane, due, version, epoch, attempt, pass, i)
    join event q on q.stream_id = c.message and q.version = 1
    left join body b on b.message_id = c.message;
end $$;

-- Takes messages out of a batch that is held on: they wait again as before. Only what is in the batch can be put back, so
-- a repeated call does nothing.
create function posthaste.put_back(p_batch bigint, p_messages uuid[]) returns void
language plpgsql volatile set search_path = posthaste, pg_temp as $$
declare
  v_claim posthaste.claim;
  v_lanes uuid[];
  v_dues timestamptz[];
  v_bucket bigint;
begin
  select * into v_claim from claim c where c.batch = p_batch for no key update;
  if not found then return; end if;
  select array_agg(u.lane), array_agg(u.due) into v_lanes, v_dues
    from unnest(v_claim.messages, v_claim.lanes, v_claim.dues) u(message, lane, due) where u.message = any (p_messages);
  if v_lanes is null then return; end if;
  for v_bucket in select distinct lane_bucket(l) from unnest(v_lanes) l order by 1 loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select u.lane, u.due, u.message, u.version, u.epoch, u.attempt
    from unnest(v_claim.messages, v_claim.lanes, v_claim.dues, v_claim.versions, v_claim.epochs, v_claim.attempts)
      u(message, lane, due, version, epoch, attempt)
    where u.message = any (p_messages)
  on conflict do nothing;
  update claim c set (messages, lanes, dues, versions, epochs, attempts) = (
      select coalesce(array_agg(u.message), '{}'), coalesce(array_agg(u.lane), '{}'), coalesce(array_agg(u.due), '{}'),
        coalesce(array_agg(u.version), '{}'), coalesce(array_agg(u.epoch), '{}'), coalesce(array_agg(u.attempt), '{}')
      from unnest(v_claim.messages, v_claim.lanes, v_claim.dues, v_claim.versions, v_claim.epochs, v_claim.attempts)
        u(message, lane, due, version, epoch, attempt)
      where u.message <> all (p_messages))
    where c.batch = p_batch;
  perform wake_lanes(v_lanes, v_dues);
end $$;

-- Ends a batch. What its worker did not start waits again as before; if the batch is no longer held, nothing happens.
create function posthaste.release(
  p_batch bigint, p_lanes uuid[], p_dues timestamptz[], p_messages uuid[], p_versions int[], p_epochs int[], p_attempts int[]
) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
declare
  v_bucket bigint;
  v_held uuid[];
begin
  if cardinality(p_messages) = 0 then
    delete from claim where batch = p_batch;
    return found;
  end if;
  delete from claim where batch = p_batch returning messages into v_held;
  if found then
    for v_bucket in select distinct lane_bucket(l) from unnest(p_lanes) l order by 1 loop
      perform pg_advisory_xact_lock_shared(v_bucket);
    end loop;
    insert into ready (lane, due_at, message_id, version, epoch, attempt)
      select * from unnest(p_lanes, p_dues, p_messages, p_versions, p_epochs, p_attempts)
        u(lane, due, message, version, epoch, attempt)
      where u.message = any (v_held)
    on conflict do nothing;
    perform wake_lanes(p_lanes, p_dues);
  end if;
  return v_held is not null;
end $$;

-- Moves batches whose lease ran out to another worker under new names: what was fenced by the old name is void.
create function posthaste.take_over(p_worker text, p_lease_ms int, p_max int) returns table (
  batch bigint, messages uuid[], lanes uuid[], dues_ms bigint[], versions int[], epochs int[], attempts int[]
)
language sql volatile set search_path = posthaste, pg_temp as $$
  with expired as (
    select batch from claim where lease_until < clock_timestamp() order by lease_until limit p_max for update skip locked
  )
  update claim c set
    batch = nextval('posthaste.batch'), worker = p_worker,
    lease_until = clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0)
  from expired x where c.batch = x.batch
  returning c.batch, c.messages, c.lanes,
    (select array_agg((extract(epoch from d) * 1000)::bigint order by i) from unnest(c.dues) with ordinality u(d, i)),
    c.versions, c.epochs, c.attempts
$$;
