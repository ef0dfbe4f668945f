-- Looks at the next journals of before p_before that tell of one deed, in their order, and forgets them: replays only once they have
-- ended. Answers how many went and the last one looked at; nothing while another sweep is under way.
create or replace function forget_deeds(p_before timestamptz, p_at timestamptz, p_id uuid, p_limit int)
returns table (removed int, next_at timestamptz, next_id uuid)
language plpgsql volatile
as $$
declare
  v_seen uuid[];
  v_gone uuid[];
  v_names text[];
  v_replays uuid[];
  v_at timestamptz;
begin
  if not pg_try_advisory_xact_lock(lock_key(1)) then return; end if;
  -- As in forget_ended: whoever holds facts that were read before does not write them once this has committed.
  perform 1 from projection order by name, generation for update;
  select coalesce(array_agg(d.stream_id order by d.at, d.stream_id), '{}'),
    coalesce(array_agg(d.stream order by d.at, d.stream_id), '{}'), max(d.at)
    into v_seen, v_names, v_at from (
      select e.at, e.stream_id, e.stream from event e
      where e.version = 1 and e.stream ~ '^(access|blocked|command|replay)-' and e.at < p_before
        and (p_at is null or (e.at, e.stream_id) > (p_at, p_id))
      order by e.at, e.stream_id limit p_limit) d;
  select coalesce(array_agg(u.id), '{}'), coalesce(array_agg(u.name), '{}') into v_gone, v_names
    from unnest(v_seen, v_names) u(id, name)
    where not exists (select from replay r where r.next_at < 'infinity' and u.name = 'replay-' || r.id);
  v_replays := array(select substr(n, 8)::uuid from unnest(v_names) n where n like 'replay-%');
  delete from replay_search where replay_id = any (v_replays);
  delete from replay where id = any (v_replays);
  delete from event where stream_id = any (v_gone);
  delete from stream_key where stream_id = any (v_gone);
  insert into forgotten_message (message_id) select unnest(v_gone) on conflict do nothing;
  -- Journals are copied to where the streams of messages are.
  if streams_elsewhere() then
    insert into forgotten_stream (message_id, stream) select * from unnest(v_gone, v_names) on conflict do nothing;
  end if;
  return query select cardinality(v_gone), case when cardinality(v_seen) = p_limit then v_at end,
    case when cardinality(v_seen) = p_limit then v_seen[p_limit] end;
end $$;
