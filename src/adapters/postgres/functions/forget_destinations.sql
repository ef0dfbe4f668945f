-- Forgets those of these destinations that were removed before p_before and that nothing points at any more: with its journals, which
-- p_owners, p_streams and p_journals name, its lane and its health. Answers how many; null while another sweep is under way.
-- Every list has been read beyond p_before, so a message that a list lacks waits, is in a line, claimed, set aside or owed.
create or replace function forget_destinations(
  p_before timestamptz, p_ids uuid[], p_owners uuid[], p_streams uuid[], p_journals text[]
) returns int
language plpgsql volatile
as $$
declare
  v_generation int;
  v_ids uuid[];
  v_streams uuid[];
  v_journals text[];
begin
  if not pg_try_advisory_xact_lock(lock_key(1)) then return null; end if;
  -- As in forget_ended: whoever holds facts that were read before does not write them once this has committed.
  perform 1 from projection order by name, generation for update;
  update looked_through set goes_on = false where destination = any (p_ids) and goes_on;
  v_generation := (select generation from projection where name = 'messages' and live);
  v_ids := array(
    select d.id from destination d
    where d.id = any (p_ids) and d.removed_at < p_before
      and not exists (select from event e join unnest(p_owners, p_streams) u(owner, stream) on u.stream = e.stream_id
        where u.owner = d.id and e.at >= p_before)
      and not exists (select from parked s join unnest(p_owners, p_journals) u(owner, journal) on u.journal = s.stream
        where u.owner = d.id)
      and not exists (select from message_view v
        where v.generation = v_generation and v.org_id = d.org_id and v.recipient = d.id::text)
      and not exists (
        select from parked s cross join lateral (
          select e.data from event e where e.stream_id = substr(s.stream, 9)::uuid and e.version = 1
          union all select c.data from copied_fact c where c.stream_id = substr(s.stream, 9)::uuid and c.version = 1) f
        where s.stream like 'message-%' and f.data ->> 'destination' = d.id::text));
  -- Of a channel whose messages name somebody else, those of before the removal are looked through, a stretch with each call.
  v_ids := array(select i from unnest(v_ids) i where look_through(i, v_generation));
  -- Whoever is about to put a message into the lane holds its bucket. Two statements, so that the second one sees what was put in
  -- before the lock was taken; who comes later finds no lane and makes one.
  v_ids := array(select i from unnest(v_ids) i where pg_try_advisory_xact_lock(lane_bucket(i)));
  v_ids := array(select i from unnest(v_ids) i where holds_nothing(i));
  select coalesce(array_agg(u.stream), '{}'), coalesce(array_agg(u.journal), '{}') into v_streams, v_journals
    from unnest(p_owners, p_streams, p_journals) u(owner, stream, journal) where u.owner = any (v_ids);
  delete from event where stream_id = any (v_streams);
  insert into forgotten_message (message_id) select unnest(v_streams) on conflict do nothing;
  -- Journals are copied to where the streams of messages are.
  if streams_elsewhere() then
    insert into forgotten_stream (message_id, stream) select * from unnest(v_streams, v_journals) on conflict do nothing;
  end if;
  delete from health h using projection p where p.name = 'health' and h.generation = p.generation and h.destination = any (v_ids);
  delete from health_bucket h using projection p where p.name = 'health' and h.generation = p.generation and h.destination = any (v_ids);
  delete from alert_notice where destination = any (v_ids) or target_id = any (v_ids);
  delete from lane where lane = any (v_ids);
  delete from looked_through where destination = any (v_ids);
  delete from destination where id = any (v_ids);
  return cardinality(v_ids);
end $$;
