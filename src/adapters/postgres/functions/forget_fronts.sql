-- Forgets what was before these facts in their journals, versions stay. Each is the fact after which its
-- journal rests. p_places says where they stand in the log that is read, if that is not this one. Answers how many facts went; null while
-- another sweep is under way.
-- Nothing goes that somebody has yet to read who keeps a place in the log, or owes: a projection, also one that is built anew, alerts, and
-- the outlet, unless nobody has held that since p_before. Places are compared, not times: a clock may be ahead.
create or replace function forget_fronts(p_before timestamptz, p_ids uuid[], p_streams text[], p_versions int[], p_places text[])
returns bigint
language plpgsql volatile
as $$
declare
  v_read numeric[];
  v_ids uuid[];
  v_versions int[];
  v_removed bigint;
begin
  if not pg_try_advisory_xact_lock(lock_key(1)) then return null; end if;
  -- As in forget_ended: whoever holds facts that were read before does not write them once this has committed.
  perform 1 from projection order by name, generation for update;
  select min(coalesce(string_to_array(translate(r.position, '/', ':'), ':')::numeric[], '{}')) into v_read from (
    select position from projection
    union all select position from alert_progress
    union all select position from fact_outlet where begun and lease_until >= p_before) r;
  select coalesce(array_agg(u.id), '{}'), coalesce(array_agg(u.version), '{}') into v_ids, v_versions
    from unnest(p_ids, p_streams, p_versions, p_places) u(id, stream, version, place)
    where not exists (select from parked s where s.stream = u.stream)
      -- Facts of one journal may stand in the log in another order than their versions.
      and v_read >= coalesce(string_to_array(translate(u.place, '/', ':'), ':')::numeric[],
        (select max(array[e.tx, e.position]::numeric[]) from event e where e.stream_id = u.id and e.version <= u.version));
  -- The fronts of journals that are in EventStoreDB go there too.
  insert into forgotten_front as f (stream, version)
    select u.stream, u.version from unnest(p_ids, p_streams, p_versions, p_places) u(id, stream, version, place)
    where u.place is not null and u.id = any (v_ids)
  on conflict (stream) do update set version = greatest(f.version, excluded.version);
  delete from event e using unnest(v_ids, v_versions) u(id, version) where e.stream_id = u.id and e.version < u.version;
  get diagnostics v_removed = row_count;
  return v_removed;
end $$;
