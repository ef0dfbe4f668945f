-- Deletes messages with everything kept of them, except those that went on after the given version. Answers how many the lists had; null while
-- another process forgets, or a rebuild begins.
create or replace function forget(p_ids uuid[], p_versions int[]) returns int
language plpgsql volatile as $$
declare
  v_ids uuid[];
  v_removed int;
begin
  if not pg_try_advisory_xact_lock(lock_key(1)) then return null; end if;
  -- Holds the next version: an append waits for it, and then finds no stream.
  with taken as (
    insert into event (stream_id, tx, at, version, name, data)
      select u.id, log_tx(), 'epoch', u.version + 1, 'forgotten', 'null' from unnest(p_ids, p_versions) u(id, version) order by u.id
    on conflict do nothing returning stream_id
  )
  select coalesce(array_agg(t.stream_id), '{}') into v_ids from taken t;
  delete from event where stream_id = any (v_ids);
  delete from message where id = any (v_ids);
  delete from detail where stream_id = any (v_ids);
  delete from idempotency where message_id = any (v_ids);
  delete from parked where stream = any (array(select 'message-' || i from unnest(v_ids) i));
  delete from append_intent where message_id = any (v_ids);
  insert into forgotten_stream (message_id) select i from stream_follower, unnest(v_ids) i on conflict do nothing;
  with lost as (
    delete from message_view v where v.id = any (v_ids) returning v.id, v.generation, v.org_id, v.channel, v.status
  ), summed as (
    select l.generation, l.org_id, l.channel, l.status, count(*) as n from lost l group by 1, 2, 3, 4
  ), counted as (
    update message_count c set count = c.count - s.n from summed s
      where (c.generation, c.org_id, c.channel, c.status) = (s.generation, s.org_id, s.channel, s.status)
  )
  select count(distinct l.id) into v_removed from lost l;
  return v_removed;
end $$;
