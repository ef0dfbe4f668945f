-- Applies what has not been applied yet, and answers whether there may be more to claim now. Whoever appended tells when it began: after a minute it is too late for that, because
-- the rows of applied_change that would stop it may be gone, and the follower does it.
create or replace function apply_stored(p_stored json, p_begun timestamptz) returns boolean
language plpgsql volatile as $$
declare
  v_stored stored_change[] := array(select s from json_populate_recordset(null::stored_change, p_stored) s);
  v_todo stored_change[];
  v_fresh uuid[];
  v_now timestamptz := clock_timestamp();
begin
  if p_begun < v_now - interval '1 minute' then return false; end if;

  -- What was forgotten meanwhile stays so.
  v_stored := array(select s from unnest(v_stored) s where not exists (
    select 1 from forgotten_message f where f.message_id = s.message));
  if cardinality(v_stored) = 0 then return false; end if;

  -- An erasure changes these rows first: a copy that is kept before is erased with it, and one that comes after is erased here.
  perform 1 from stream_key k
    where k.stream_id = any (array(select s.message from unnest(v_stored) s where s.copies is not null))
    order by k.stream_id for share;
  insert into copied_fact (stream_id, at, version, name, data, actor)
    select s.message, 'epoch'::timestamptz + c.at_ms * interval '1 millisecond', c.version, c.name,
      case when k.stream_id is null then c.data else erased_fact(c.name, c.data) end,
      case when k.stream_id is null then c.actor else erased_actor(c.actor) end
    from unnest(v_stored) s
      left join stream_key k on k.stream_id = s.message and k.sealed is null
      cross join json_to_recordset(s.copies) c(version int, name text, data json, at_ms bigint, actor text)
    where s.copies is not null order by s.message, c.version
  on conflict do nothing;
  -- Where its event was published the row is there already.
  insert into fan_out (event_id, destination, message_id)
    select (c.data ->> 'eventId')::uuid, (c.data ->> 'destination')::uuid, s.message
    from unnest(v_stored) s cross join json_to_recordset(s.copies) c(version int, data json)
    where s.copies is not null and c.version = 1 and c.data ->> 'eventId' is not null
  on conflict do nothing;
  with came as (
    delete from append_intent i using (select u.id from unnest(v_stored) s cross join unnest(s.ids) u(id)) s
      where i.event_id = s.id returning i.*
  ), bodies as (
    update message m set body = c.body, event_id = null from came c where c.body is not null and m.id = c.message_id
  )
  insert into detail (stream_id, version, epoch, attempt, body, headers)
    select c.message_id, c.version, c.epoch, c.attempt, c.response, c.headers from came c where c.response is not null
  on conflict do nothing;
  -- Unless another body came with a later fact.
  if exists (select 1 from unnest(v_stored) s where s.erased is not null) then
    v_fresh := array(select s.message from unnest(v_stored) s where s.erased is not null and not exists (
      select 1 from applied_change a where a.message_id = s.message and a.version > s.erased));
    update message set body = null, event_id = null where id = any (v_fresh);
    update detail set body = null, headers = null where stream_id = any (v_fresh) and body is not null;
  end if;

  -- Rows are taken in the order of their messages, so that two who apply the same wait for each other.
  v_fresh := '{}';
  with first as (
    insert into applied_change (message_id, version, log_at)
      select s.message, s.version, s.log_at from unnest(v_stored) s where s.move is not null order by s.message
    on conflict do nothing
    returning message_id
  )
  select coalesce(array_agg(f.message_id), '{}') into v_fresh from first f;
  v_todo := array(select s from unnest(v_stored) s where s.move is not null and s.message = any (v_fresh));
  if cardinality(v_todo) < (select count(*) from unnest(v_stored) s where s.move is not null) then
    perform 1 from applied_change a join unnest(v_stored) s on s.message = a.message_id
      where s.move is not null order by a.message_id for update of a;
    v_todo := v_todo || array(
      select s from unnest(v_stored) s join applied_change a on a.message_id = s.message
      where s.move is not null and s.message <> all (v_fresh) and a.version <= s.expected);
    update applied_change a set version = s.version, log_at = s.log_at, at = v_now from unnest(v_todo) s
      where a.message_id = s.message and s.message <> all (v_fresh);
    -- Who appended does not always learn where.
    update applied_change a set log_at = s.log_at from unnest(v_stored) s where a.message_id = s.message and a.log_at is null;
  end if;
  if cardinality(v_todo) = 0 then return false; end if;

  return move_in_queue(
      array_agg(s.message), array_agg(s.move), array_agg(s.lane), array_agg(s.line), array_agg(s.due_ms),
      array_agg(s.version), array_agg(s.epoch), array_agg(s.attempt))
    from unnest(v_todo) s;
end $$;
