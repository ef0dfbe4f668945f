-- Promises: where the streams of messages live in EventStoreDB, everything kept here agrees with them. What comes with a
-- fact is written down before the fact; what a fact means for the queue is applied once, whoever does it and how often;
-- and how far the log was followed commits with what was made of it.

-- Copies of the few facts that are looked for here: the first of each message, because a claim hands it out, and those that
-- tell the name a provider gave it. A message that has one is ours. As a child of posthaste.event it is found where such facts are
-- looked for, and forgotten with its message.
create table posthaste.copied (primary key (stream_id, version)) inherits (posthaste.event);
create index copied_provider_message on posthaste.copied ((data ->> 'providerMessageId'))
  where name in ('AttemptSucceeded@1', 'ReceiptRecorded@1', 'ReceiptRecorded@2') and data ->> 'providerMessageId' is not null;

-- What comes with an append, named by the id of its first event: there before the event, gone when it was applied. One whose
-- event never came is what a crash left behind.
create table posthaste.intent (
  event_id uuid primary key,
  message_id uuid not null,
  -- A body that takes the place of another one. A first body needs no waiting: nobody is handed it yet.
  body text,
  epoch int,
  attempt int,
  response text,
  at timestamptz not null default clock_timestamp()
);
create index intent_of_message on posthaste.intent (message_id);
create index intent_age on posthaste.intent (at);

-- The last version of each message whose queue change was applied. Two may come to apply it, whoever appended and whoever
-- follows the log, so a row stays until the log was followed beyond it (log_at) and the first can't come any more (at).
create table posthaste.applied (
  message_id uuid primary key,
  version int not null,
  log_at bigint,
  at timestamptz not null default clock_timestamp()
) with (fillfactor = 80);
create index applied_age on posthaste.applied (at);

-- How far a log was followed, and who is at it.
create table posthaste.follower (
  name text primary key,
  position text,
  holder text,
  lease_until timestamptz not null default '-infinity',
  -- So many facts of ours were found.
  facts bigint not null default 0
);
insert into posthaste.follower (name) values ('queue'), ('journals');

-- Streams that are to go from EventStoreDB too.
create table posthaste.forgotten_stream (message_id uuid primary key);

create function posthaste.forget_stream() returns trigger
language plpgsql set search_path = posthaste, pg_temp as $$
begin
  insert into forgotten_stream (message_id) values (old.stream_id) on conflict do nothing;
  delete from applied where message_id = old.stream_id;
  delete from intent where message_id = old.stream_id;
  return null;
end $$;
create trigger forget_stream after delete on posthaste.copied for each row when (old.version = 1)
  execute function posthaste.forget_stream();

-- One entry of an append before it is appended, as posthaste.reserve is told it.
create type posthaste.reservation as (
  n int, id uuid, message uuid, expected int, fence bigint, lane uuid, generation int,
  opens boolean, body text, org text, key text, hash text, at_ms bigint,
  epoch int, attempt int, response text
);

-- What has to be true and kept before an append: entries whose fence is lost or whose gate is closed are named, and so are
-- those whose key is taken, with its message and for how long it has been. All others may be appended; their key, first
-- body and intent are kept. Nothing stays locked: whatever changes before the append meets the version check.
create function posthaste.reserve(p_entries json) returns table (n int, verdict text, other uuid, hash text, age_ms bigint)
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  v_asked posthaste.reservation[] := array(select a from json_populate_recordset(null::posthaste.reservation, p_entries) a);
  v_refused int[];
begin
  v_refused := array(
    select a.n from unnest(v_asked) a where a.fence is not null and not exists (select 1 from claim c where c.batch = a.fence));
  return query select r, 'fence', null::uuid, null::text, null::bigint from unnest(v_refused) r;
  return query
    select a.n, 'gate', null::uuid, null::text, null::bigint from unnest(v_asked) a
    where a.lane is not null and a.n <> all (v_refused)
      and exists (select 1 from lane l where l.lane = a.lane and (l.generation <> a.generation or l.paused));
  v_refused := v_refused || array(
    select a.n from unnest(v_asked) a
    where a.lane is not null and exists (select 1 from lane l where l.lane = a.lane and (l.generation <> a.generation or l.paused)));

  -- Sorted, so that two batches with the same keys wait for each other instead of deadlocking.
  if exists (select 1 from unnest(v_asked) a where a.key is not null) then
    with taken as (
      insert into idempotency (org_id, key, message_id, request_hash, at)
        select a.org, a.key, a.message, a.hash, clock_timestamp() from unnest(v_asked) a
        where a.key is not null and a.n <> all (v_refused) order by a.org, a.key, a.n
      on conflict do nothing
      returning message_id
    )
    select v_refused || coalesce(array_agg(a.n), '{}') into v_refused
      from unnest(v_asked) a where a.key is not null and a.message not in (select t.message_id from taken t);
    -- A new statement, so it sees the row that the insert above lost to.
    return query
      select a.n, 'taken', i.message_id, i.request_hash, (extract(epoch from clock_timestamp() - i.at) * 1000)::bigint
      from unnest(v_asked) a join idempotency i on i.org_id = a.org and i.key = a.key
      where a.key is not null and a.n = any (v_refused);
  end if;

  -- A claim need not reach the disk, but must before its attempt is started elsewhere: a crash that takes it back would put
  -- the message in the queue again, for somebody who takes the attempt for an own one. A commit that writes takes
  -- everything before it along.
  if exists (select 1 from unnest(v_asked) a where a.fence is not null and a.lane is not null) then
    perform pg_logical_emit_message(true, 'posthaste', 'an attempt starts');
  end if;

  -- A message that is there already keeps its body, or none if it was erased.
  insert into body (message_id, body)
    select a.message, a.body from unnest(v_asked) a
    where a.opens and a.expected = 0 and a.n <> all (v_refused)
      and not exists (select 1 from copied o where o.stream_id = a.message)
  on conflict do nothing;
  insert into intent (event_id, message_id, body, epoch, attempt, response)
    select a.id, a.message, case when a.expected > 0 then a.body end, a.epoch, a.attempt, a.response from unnest(v_asked) a
    where (a.opens or a.response is not null) and a.n <> all (v_refused)
  on conflict do nothing;
end $$;

-- Takes back what was reserved for appends that will never be. A first body stays where its message is.
create function posthaste.withdraw(p_ids uuid[]) returns void
language plpgsql volatile set search_path = posthaste, pg_temp set enable_seqscan = off as $$
declare
  v_messages uuid[];
begin
  with gone as (delete from intent i where i.event_id = any (p_ids) returning i.message_id)
  select array_agg(g.message_id) into v_messages from gone g
    where not exists (select 1 from copied o where o.stream_id = g.message_id);
  v_messages := array(
    select m from unnest(v_messages) m where not exists (select 1 from intent i where i.message_id = m));
  delete from body where message_id = any (v_messages);
  delete from idempotency where message_id = any (v_messages);
end $$;

-- What stored facts of one message mean here: `copies` are those to be found here too, `erased` the version that erased its
-- body, `move` the queue change of `version`, decided on top of `expected`; each null when there is none.
create type posthaste.stored as (
  ids uuid[], message uuid, expected int, version int, log_at bigint,
  copies json, erased int,
  move text, lane uuid, line text, due_ms bigint, epoch int, attempt int
);

-- Applies what has not been applied yet. Whoever appended tells when it began: after a minute it is too late for that, because
-- the rows of posthaste.applied which would stop it may be gone, and the follower does it.
create function posthaste.apply_stored(p_stored json, p_begun timestamptz) returns void
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_stored posthaste.stored[] := array(select s from json_populate_recordset(null::posthaste.stored, p_stored) s);
  v_todo posthaste.stored[];
  v_fresh uuid[];
  v_bucket bigint;
begin
  if p_begun < clock_timestamp() - interval '1 minute' then return; end if;

  insert into copied (stream_id, tx, position, at, version, name, data, actor)
    select s.message, 0, 0, 'epoch'::timestamptz + c.at_ms * interval '1 millisecond', c.version, c.name, c.data, c.actor
    from unnest(v_stored) s
      cross join json_to_recordset(s.copies) c(version int, name text, data json, at_ms bigint, actor text)
    where s.copies is not null order by s.message, c.version
  on conflict do nothing;
  with came as (
    delete from intent i using (select u.id from unnest(v_stored) s cross join unnest(s.ids) u(id)) s
      where i.event_id = s.id returning i.*
  ), bodies as (
    insert into body (message_id, body) select c.message_id, c.body from came c where c.body is not null
    on conflict (message_id) do update set body = excluded.body
  )
  insert into response (message_id, epoch, attempt, body)
    select c.message_id, c.epoch, c.attempt, c.response from came c where c.response is not null
  on conflict do nothing;
  -- Unless another body came with a later fact.
  if exists (select 1 from unnest(v_stored) s where s.erased is not null) then
    v_fresh := array(select s.message from unnest(v_stored) s where s.erased is not null and not exists (
      select 1 from applied a where a.message_id = s.message and a.version > s.erased));
    delete from body where message_id = any (v_fresh);
    delete from response where message_id = any (v_fresh);
  end if;

  -- Rows are taken in the order of their messages, so that two who apply the same wait for each other.
  v_fresh := '{}';
  with first as (
    insert into applied (message_id, version, log_at)
      select s.message, s.version, s.log_at from unnest(v_stored) s where s.move is not null order by s.message
    on conflict do nothing
    returning message_id
  )
  select coalesce(array_agg(f.message_id), '{}') into v_fresh from first f;
  v_todo := array(select s from unnest(v_stored) s where s.move is not null and s.message = any (v_fresh));
  if cardinality(v_todo) < (select count(*) from unnest(v_stored) s where s.move is not null) then
    perform 1 from applied a join unnest(v_stored) s on s.message = a.message_id
      where s.move is not null order by a.message_id for update of a;
    v_todo := v_todo || array(
      select s from unnest(v_stored) s join applied a on a.message_id = s.message
      where s.move is not null and s.message <> all (v_fresh) and a.version <= s.expected);
    update applied a set version = s.version, log_at = s.log_at, at = clock_timestamp() from unnest(v_todo) s
      where a.message_id = s.message and s.message <> all (v_fresh);
    -- Who appended does not always learn where.
    update applied a set log_at = s.log_at from unnest(v_stored) s where a.message_id = s.message and a.log_at is null;
  end if;
  if cardinality(v_todo) = 0 then return; end if;

  for v_bucket in select distinct lane_bucket(s.lane) from unnest(v_todo) s where s.move = 'wait' or s.line is not null order by 1 loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  if exists (select 1 from unnest(v_todo) s where s.move = 'wait' and s.line is null) then
    insert into ready (lane, due_at, message_id, version, epoch, attempt)
      select s.lane, 'epoch'::timestamptz + s.due_ms * interval '1 millisecond', s.message, s.version, s.epoch, s.attempt
      from unnest(v_todo) s where s.move = 'wait' and s.line is null
    on conflict do nothing;
    perform wake_lanes(array_agg(s.lane), array_agg('epoch'::timestamptz + s.due_ms * interval '1 millisecond'))
      from unnest(v_todo) s where s.move = 'wait' and s.line is null;
  end if;
  delete from ready r using unnest(v_todo) s
    where s.move = 'leave' and r.lane = s.lane and r.message_id = s.message
      and r.due_at = 'epoch'::timestamptz + s.due_ms * interval '1 millisecond';
  perform keep_lines(
      array_agg(s.message order by s.i), array_agg(s.lane order by s.i), array_agg(s.line order by s.i),
      array_agg(s.move order by s.i),
      array_agg('epoch'::timestamptz + s.due_ms * interval '1 millisecond' order by s.i),
      array_agg(s.version order by s.i), array_agg(s.epoch order by s.i), array_agg(s.attempt order by s.i))
    from unnest(v_todo) with ordinality
      s(ids, message, expected, version, log_at, copies, erased, move, lane, line, due_ms, epoch, attempt, i)
    where s.line is not null;
end $$;

-- Moves a follower on together with what it found, if it still is where it believes to be.
create function posthaste.advance(
  p_name text, p_holder text, p_from text, p_to text, p_facts int, p_stored json
) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  update follower set position = p_to, facts = facts + p_facts
    where name = p_name and holder = p_holder and position is not distinct from p_from;
  if not found then return false; end if;
  perform apply_stored(p_stored, null);
  return true;
end $$;
