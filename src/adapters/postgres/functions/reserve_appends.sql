-- Checks and keeps what comes with facts before they are appended to streams elsewhere. Answers by their place: 'fence' (the batch is no longer
-- claimed), 'gate' (the lane was paused or its circuit changed), 'there' (the message was opened before), 'duplicate' (the key was used, with its
-- message). All others may be appended. Nothing stays locked: a change before the append meets the version check.
create or replace function reserve_appends(
  p_writings text[], p_messages uuid[], p_fences uuid[], p_gate_lanes uuid[], p_gate_generations int[],
  p_opens boolean[], p_orgs text[], p_keys text[], p_hashes text[], p_entries text[]
) returns table (n int, verdict text, other uuid, hash text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_held uuid[];
  v_closed int[];
  v_some int[];
  v_refused int[] := '{}';
begin
  v_held := held_fences(p_fences);
  v_refused := array(
    select u.i from unnest(p_fences) with ordinality u(fence, i) where u.fence is not null and u.fence <> all (v_held));
  return query select r, 'fence', null::uuid, null::text from unnest(v_refused) r;
  v_some := array(
    select u.i from unnest(p_gate_lanes) with ordinality u(lane, i) where u.lane is not null and u.i <> all (v_refused) order by u.i);
  if cardinality(v_some) > 0 then
    v_closed := array(select v_some[c] from unnest(closed_gates(
      array(select p_gate_lanes[i] from unnest(v_some) i), array(select p_gate_generations[i] from unnest(v_some) i))) c);
    return query select c, 'gate', null::uuid, null::text from unnest(v_closed) c;
    v_refused := v_refused || v_closed;
  end if;

  if true = any (p_opens) then
    v_some := array(
      select u.i from unnest(p_messages, p_opens) with ordinality u(message, opens, i) where u.opens and (
        exists (select from event e where e.stream_id = u.message)
        or exists (select from append_intent t where t.message_id = u.message and t.opens)));
    return query select c, 'there', p_messages[c], null::text from unnest(v_some) c;
    v_refused := v_refused || v_some;
    -- Sorted, so that two batches with the same keys don't deadlock.
    with asked as (
      select u.* from unnest(p_orgs, p_keys, p_hashes, p_messages) with ordinality u(org, key, hash, message, i)
      where u.key is not null and u.i <> all (v_refused)
    ), taken as (
      insert into idempotency (org_id, key, message_id, request_hash)
        select a.org, a.key, a.message, a.hash from asked a order by a.org, a.key
      on conflict do nothing
      returning message_id
    )
    select coalesce(array_agg(a.i), '{}') into v_some from asked a where a.message not in (select t.message_id from taken t);
    -- A new statement sees the row that the insert above lost to.
    return query select u.i, 'duplicate', k.message_id, k.request_hash from unnest(v_some) u(i)
      join idempotency k on k.org_id = p_orgs[u.i] and k.key = p_keys[u.i];
    v_refused := v_refused || v_some;
  end if;

  -- A claim must reach the disk before its attempt starts elsewhere: a crash that undid it would queue the message again, for a worker
  -- that takes the attempt for its own. A commit that writes takes everything before it along.
  if exists (select from unnest(p_fences, p_gate_lanes) u(fence, lane) where u.fence is not null and u.lane is not null) then
    perform pg_logical_emit_message(true, current_schema(), 'an attempt starts');
  end if;
  insert into append_intent (writing, message_id, opens, owed, entry)
    select u.writing, u.message, u.opens, false, u.entry
    from unnest(p_writings, p_messages, p_opens, p_entries) with ordinality u(writing, message, opens, entry, i)
    where u.entry is not null and u.i <> all (v_refused);
end $$;
