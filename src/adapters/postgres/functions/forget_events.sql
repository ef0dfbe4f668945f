-- Looks at the next events of before p_before, or of before their org's own days, in their order and forgets those none of whose messages is left. Answers how many
-- went and the last one looked at; nothing while another sweep is under way.
create or replace function forget_events(
  p_now timestamptz, p_days_max float8, p_before timestamptz, p_at timestamptz, p_id uuid, p_limit int
)
returns table (removed int, next_at timestamptz, next_id uuid)
language plpgsql volatile
as $$
declare
  v_seen uuid[];
  v_gone uuid[];
  v_streams uuid[];
  v_at timestamptz;
  v_latest timestamptz;
begin
  if not pg_try_advisory_xact_lock(lock_key(1)) then return; end if;
  -- As in forget_ended: whoever holds facts that were read before does not write them once this has committed.
  perform 1 from projection order by name, generation for update;
  v_latest := greatest(p_before, (
    select max(p_now - least((o.retention ->> 'endedDays')::float8, p_days_max) * interval '1 day')
    from org o where o.retention ->> 'endedDays' is not null));
  select coalesce(array_agg(p.id order by p.at, p.id), '{}'), max(p.at) into v_seen, v_at from (
    select p.id, p.at from publication p
    where p.at < v_latest and (p_at is null or (p.at, p.id) > (p_at, p_id)) order by p.at, p.id limit p_limit) p;
  v_gone := array(
    select p.id from publication p
    where p.id = any (v_seen) and p.at < forgotten_before(p.org_id, 'endedDays', p_now, p_days_max, p_before) and not exists (
      select 1 from fan_out f where f.event_id = p.id and (
        exists (select 1 from event e where e.stream_id = f.message_id)
        or exists (select 1 from copied_fact c where c.stream_id = f.message_id)
        or exists (select 1 from owed_message o where o.message_id = f.message_id))));
  delete from fan_out where event_id = any (v_gone);
  delete from shared_body where event_id = any (v_gone);
  delete from event_idempotency where event_id = any (v_gone);
  with gone as (delete from publication p where p.id = any (v_gone) returning p.id, p.stream_id)
  select array_agg(g.stream_id) into v_streams from gone g;
  delete from event where stream_id = any (v_streams);
  delete from stream_key where stream_id = any (v_streams);
  insert into forgotten_message (message_id) select unnest(v_streams) on conflict do nothing;
  -- Journals are copied to where the streams of messages are.
  if streams_elsewhere() then
    insert into forgotten_stream (message_id, stream) select g, 'event-' || g from unnest(v_gone) g on conflict do nothing;
  end if;
  return query select cardinality(v_gone), case when cardinality(v_seen) = p_limit then v_at end,
    case when cardinality(v_seen) = p_limit then v_seen[p_limit] end;
end $$;
