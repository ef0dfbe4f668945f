-- What has to be true and kept before an append: entries whose fence is lost or whose gate is closed are named, and so are
-- those whose key is taken, with its message and for how long it has been. All others may be appended; their key, first
-- body, intent and place in their line are kept, and the key that seals what they say of a person. Nothing stays locked: whatever
-- changes before the append meets the version check.
create or replace function reserve_appends(p_entries json) returns table (n int, verdict text, other uuid, hash text, age_ms bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_asked reservation[] := array(select a from json_populate_recordset(null::reservation, p_entries) a);
  v_held uuid[];
  v_gated reservation[];
  v_closed int[];
  v_refused int[];
  v_bucket bigint;
begin
  v_held := held_fences(array(select a.fence from unnest(v_asked) a where a.fence is not null));
  v_refused := array(select a.n from unnest(v_asked) a where a.fence is not null and a.fence <> all (v_held));
  return query select r, 'fence', null::uuid, null::text, null::bigint from unnest(v_refused) r;
  v_gated := array(select a from unnest(v_asked) a where a.lane is not null and a.n <> all (v_refused));
  v_closed := array(
    select v_gated[i].n from unnest(closed_gates(
      array(select g.lane from unnest(v_gated) g), array(select g.generation from unnest(v_gated) g))) i);
  return query select r, 'gate', null::uuid, null::text, null::bigint from unnest(v_closed) r;
  v_refused := v_refused || v_closed;

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
    perform pg_logical_emit_message(true, current_schema(), 'an attempt starts');
  end if;

  -- The first key that anybody brings is the message's. Whoever may need it and brought another one, or none, is told it: null once it
  -- was thrown away.
  if exists (select 1 from unnest(v_asked) a where a.fact_key is not null) then
    insert into stream_key (stream_id, sealed)
      select distinct on (a.message) a.message, a.fact_key from unnest(v_asked) a
      where a.fact_key is not null and a.n <> all (v_refused) order by a.message, a.n
    on conflict do nothing;
  end if;
  if exists (select 1 from unnest(v_asked) a where a.personal) and exists (select 1 from stream_key) then
    return query
      select a.n, 'key', null::uuid, k.sealed, null::bigint from unnest(v_asked) a join stream_key k on k.stream_id = a.message
      where a.personal and a.n <> all (v_refused) and k.sealed is distinct from a.fact_key;
  end if;

  -- A message that is there already keeps its body, or none if it was erased.
  if exists (select 1 from unnest(v_asked) a where a.event is not null) then
    perform 1 from shared_body s where s.event_id in (select a.event from unnest(v_asked) a) order by s.event_id for key share;
  end if;
  insert into message (id, org_id, channel, destination, recipient, event_type, dossier_id, correlation_id, metadata, accepted_at, data, body, event_id)
    select a.message, q."orgId", q.channel, q.destination, q."to", q."eventType", q."dossierId", q."correlationId", q.metadata,
      q."acceptedAt", a.queued, a.body, case when exists (select 1 from shared_body s where s.event_id = a.event) then a.event end
    from unnest(v_asked) a
      cross join lateral json_to_record(a.queued) q("orgId" text, channel text, destination uuid, "to" text, "eventType" text,
        "dossierId" text, "correlationId" text, metadata jsonb, "acceptedAt" timestamptz)
    where a.queued is not null and a.n <> all (v_refused)
      and not exists (select 1 from copied_fact o where o.stream_id = a.message)
  on conflict do nothing;
  insert into append_intent (event_id, message_id, version, body, epoch, attempt, response, headers)
    select a.id, a.message, a.expected + 1, case when a.expected > 0 then a.body end, a.epoch, a.attempt, a.response, a.headers from unnest(v_asked) a
    where (a.opens or a.response is not null or a.line is not null) and a.n <> all (v_refused)
  on conflict do nothing;

  -- The place in the line, in the order that was asked for. Under the line's lock until commit: whoever reserves later stands
  -- behind, and nobody is given to the queue who should stand behind.
  if exists (select 1 from unnest(v_asked) a where a.line is not null) then
    for v_bucket in select distinct line_bucket(a.line_lane, a.line) from unnest(v_asked) a where a.line is not null order by 1 loop
      perform pg_advisory_xact_lock(v_bucket);
    end loop;
    insert into line_entry (message_id, lane, line, state, due_at, version, epoch, attempt)
      select a.message, a.line_lane, a.line, 'RESERVED', clock_timestamp(), 0, 0, 0 from unnest(v_asked) a
      where a.line is not null and a.n <> all (v_refused) order by a.n
    on conflict do nothing;
  end if;
end $$;
