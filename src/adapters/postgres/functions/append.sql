-- Appends entries, at most one of a stream, each all or nothing, and answers those that were not written: 'conflict' (another append was first),
-- 'fence' (the batch is no longer claimed), 'gate' (the lane was paused or its circuit changed), 'duplicate' (the key was used before). A row without
-- a stream ('work') says that there may be more to claim.
-- Times are milliseconds; texts of facts and actors are joined by U+001E, which no JSON text and no id contains. An entry opens with a text of its
-- own or with the event whose text it shares, and with the whole first fact, of which `event` holds a part.
create or replace function append(
  p_streams uuid[], p_expected int[], p_at_ms bigint[], p_actors text, p_fences uuid[],
  p_fact_entry int[], p_fact_nth int[], p_fact_names text, p_fact_data text,
  p_move_entry int[], p_moves text[], p_move_lanes uuid[], p_move_lines text[], p_move_dues_ms bigint[],
  p_move_versions int[], p_move_epochs int[], p_move_attempts int[],
  p_open_entry int[], p_open_data text, p_open_bodies text[], p_open_events uuid[], p_open_lanes uuid[], p_open_orgs text[], p_open_keys text[], p_open_hashes text[],
  p_detail_entry int[], p_detail_nth int[], p_detail_data text, p_detail_actors text, p_detail_epochs int[], p_detail_attempts int[], p_detail_bodies text[], p_detail_headers text[],
  p_gates int[], p_gate_lanes uuid[], p_gate_generations int[]
) returns table (stream uuid, verdict text, other uuid, hash text)
language plpgsql volatile
as $$
declare
  v_tx bigint := log_tx();
  v_actors text[] := string_to_array(p_actors, E'\x1e', '');
  v_held uuid[];
  v_refused int[] := '{}';
  v_at timestamptz[] := array(select 'epoch'::timestamptz + ms * interval '1 millisecond' from unnest(p_at_ms) ms);
  v_closed int[];
  v_names text[];
  v_data text[];
  v_won uuid[];
  v_gone uuid[];
  v_all boolean;
begin
  if exists (select 1 from unnest(p_fences) f where f is not null) then
    v_held := held_fences(p_fences);
    select coalesce(array_agg(u.i), '{}') into v_refused
      from unnest(p_fences) with ordinality u(fence, i) where u.fence is not null and u.fence <> all (v_held);
    return query select p_streams[i], 'fence', null::uuid, null::text from unnest(v_refused) i;
  end if;

  -- p_gates names the gate of each entry by its place in the other two.
  if cardinality(p_gate_lanes) > 0 then
    v_closed := closed_gates(p_gate_lanes, p_gate_generations);
    if cardinality(v_closed) > 0 then
      select coalesce(array_agg(u.i), '{}') into v_closed
        from unnest(p_gates) with ordinality u(gate, i) where u.gate = any (v_closed) and u.i <> all (v_refused);
      return query select p_streams[i], 'gate', null::uuid, null::text from unnest(v_closed) i;
      v_refused := v_refused || v_closed;
    end if;
  end if;

  -- Sorted, so that two batches with the same keys don't deadlock.
  if cardinality(p_open_entry) > 0 and exists (select 1 from unnest(p_open_keys) k where k is not null) then
    with asked as (
      select o.entry, o.org, o.key, o.hash from unnest(p_open_entry, p_open_orgs, p_open_keys, p_open_hashes) o(entry, org, key, hash)
      where o.key is not null
    ), taken as (
      insert into idempotency (org_id, key, message_id, request_hash)
        select a.org, a.key, p_streams[a.entry], a.hash from asked a order by a.org, a.key, a.entry
      on conflict do nothing
      returning message_id
    )
    select v_refused || coalesce(array_agg(a.entry), '{}') into v_refused
      from asked a where p_streams[a.entry] not in (select t.message_id from taken t);
    -- A new statement sees the row that the insert above lost to.
    return query
      select p_streams[o.entry], 'duplicate', i.message_id, i.request_hash
      from unnest(p_open_entry, p_open_orgs, p_open_keys) o(entry, org, key)
      join idempotency i on i.org_id = o.org and i.key = o.key
      where o.entry = any (v_refused);
  end if;

  -- The first fact of an entry decides it: the primary key refuses the second of two racers. The others follow the winners.
  v_names := string_to_array(p_fact_names, E'\x1e');
  v_data := string_to_array(p_fact_data, E'\x1e');
  with won as (
    insert into event (stream_id, tx, at, actor, version, name, data, org_id)
      select p_streams[f.entry], v_tx, v_at[f.entry], v_actors[f.entry], p_expected[f.entry] + 1, f.name, f.data::json,
        case when v_actors[f.entry] is not null and p_expected[f.entry] > 0 then
          (select m.org_id from message m where m.id = p_streams[f.entry]) end
      from unnest(p_fact_entry, p_fact_nth, v_names, v_data) f(entry, nth, name, data)
      where f.nth = 1 and f.entry <> all (v_refused)
      -- Sorted, so that two batches with the same streams don't deadlock.
      order by p_streams[f.entry]
    on conflict do nothing
    returning stream_id
  )
  select coalesce(array_agg(w.stream_id), '{}') into v_won from won w;
  -- After the insert: an `expected` that was never true, or a stream that was deleted while the insert waited.
  v_gone := array(
    select u.stream from unnest(p_streams, p_expected) u(stream, expected)
    where u.expected > 0 and not exists (
      select 1 from event e where e.stream_id = u.stream and e.version = u.expected));
  if cardinality(v_gone) > 0 then
    delete from event where stream_id = any (v_gone) and tx = v_tx;
    v_won := array(select w from unnest(v_won) w where w <> all (v_gone));
  end if;
  v_all := cardinality(v_won) = cardinality(p_streams);
  if cardinality(p_fact_entry) > cardinality(p_streams) then
    insert into event (stream_id, tx, at, actor, version, name, data, org_id)
      select p_streams[f.entry], v_tx, v_at[f.entry], v_actors[f.entry], p_expected[f.entry] + f.nth, f.name, f.data::json,
        case when v_actors[f.entry] is not null and p_expected[f.entry] > 0 then
          (select m.org_id from message m where m.id = p_streams[f.entry]) end
      from unnest(p_fact_entry, p_fact_nth, v_names, v_data) f(entry, nth, name, data)
      where f.nth > 1 and (v_all or p_streams[f.entry] = any (v_won));
  end if;

  if cardinality(p_move_entry) > 0 then
    if move_in_queue(
      array(select case when v_all or p_streams[m] = any (v_won) then p_streams[m] end from unnest(p_move_entry) m),
      p_moves, p_move_lanes, p_move_lines, p_move_dues_ms, p_move_versions, p_move_epochs, p_move_attempts)
    then
      return query select null::uuid, 'work', null::uuid, null::text;
    end if;
  end if;
  if cardinality(p_open_entry) > 0 then
    if p_open_events is not null then
      perform 1 from shared_body s where s.event_id = any (p_open_events) order by s.event_id for key share;
      insert into fan_out (event_id, destination, message_id)
        select o.event, o.lane, p_streams[o.entry]
        from unnest(p_open_entry, p_open_events, p_open_lanes) o(entry, event, lane)
        where o.event is not null and (v_all or p_streams[o.entry] = any (v_won))
        order by o.event, o.lane
      on conflict do nothing;
    end if;
    insert into message (id, org_id, channel, destination, recipient, event_type, dossier_id, correlation_id, metadata, accepted_at, data, body, event_id)
      select p_streams[o.entry], q."orgId", q.channel, q.destination, q."to", q."eventType", q."dossierId", q."correlationId", q.metadata,
        v_at[o.entry], o.data::json, o.body, case when exists (select 1 from shared_body s where s.event_id = o.event) then o.event end
      from unnest(p_open_entry, string_to_array(p_open_data, E'\x1e', ''), p_open_bodies, p_open_events) o(entry, data, body, event)
        cross join lateral json_to_record(o.data::json) q("orgId" text, channel text, destination uuid, "to" text, "eventType" text,
          "dossierId" text, "correlationId" text, metadata jsonb)
      where o.data is not null and (v_all or p_streams[o.entry] = any (v_won));
    -- An edited text.
    if exists (select 1 from unnest(p_open_entry) o(entry) where p_expected[o.entry] > 0) then
      update message m set body = o.body, event_id = null from unnest(p_open_entry, p_open_bodies) o(entry, body)
        where p_expected[o.entry] > 0 and m.id = p_streams[o.entry] and (v_all or m.id = any (v_won));
    end if;
  end if;
  if cardinality(p_detail_entry) > 0 then
    insert into detail (stream_id, version, data, actor, epoch, attempt, body, headers)
      select p_streams[d.entry], p_expected[d.entry] + d.nth, d.data::json, d.actor, d.epoch, d.attempt, d.body, d.headers::json
      from unnest(p_detail_entry, p_detail_nth, string_to_array(p_detail_data, E'\x1e', ''),
        string_to_array(p_detail_actors, E'\x1e', ''), p_detail_epochs, p_detail_attempts, p_detail_bodies, p_detail_headers)
        d(entry, nth, data, actor, epoch, attempt, body, headers)
      where v_all or p_streams[d.entry] = any (v_won);
  end if;

  if not v_all then
    -- A key stays free unless it opened its message.
    delete from idempotency i using unnest(p_open_entry, p_open_orgs, p_open_keys) o(entry, org, key)
      where i.org_id = o.org and i.key = o.key and o.entry <> all (v_refused) and p_streams[o.entry] <> all (v_won);
    return query
      select u.stream, 'conflict', null::uuid, null::text
      from unnest(p_streams) with ordinality u(stream, i)
      where u.i <> all (v_refused) and u.stream <> all (v_won);
  end if;
end $$;
