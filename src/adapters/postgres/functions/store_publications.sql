-- Part of publish_events and owe_messages. Answers events whose key was used before, and those already stored under their id; then nothing is
-- written.
create or replace function store_publications(p_events json) returns table (event uuid, other uuid, hash text)
language plpgsql volatile
as $$
declare
  v_events published_event[] := array(select e from json_populate_recordset(null::published_event, p_events) e);
  v_tx bigint := log_tx();
begin
  return query
    select e.id, k.event_id, k.request_hash from unnest(v_events) e
    join event_idempotency k on k.org_id = e.org and k.key = e.key
    union all select e.id, p.id, null from unnest(v_events) e join publication p on p.id = e.id;
  if found then return; end if;
  -- Sorted, so that two calls with the same keys don't deadlock.
  insert into event_idempotency (org_id, key, event_id, request_hash)
    select e.org, e.key, e.id, e.hash from unnest(v_events) e where e.key is not null order by e.org, e.key;
  insert into publication (id, stream_id, org_id, event_type, correlation_id, dossier_id, at, metadata)
    select e.id, e.stream_id, e.org, e.event_type, e.correlation, e.dossier,
      'epoch'::timestamptz + e.at_ms * interval '1 millisecond',
      e.forgettable::jsonb -> 'metadata'
    from unnest(v_events) e;
  insert into event (stream_id, stream, tx, at, actor, version, name, data)
    select e.stream_id, 'event-' || e.id, v_tx, 'epoch'::timestamptz + e.at_ms * interval '1 millisecond', e.actor, 1, e.name, e.data::json
    from unnest(v_events) e;
  insert into detail (stream_id, version, data, actor)
    select e.stream_id, 1, e.forgettable::json, e.whole_actor from unnest(v_events) e where e.forgettable is not null or e.whole_actor is not null;
  insert into shared_body (event_id, body) select e.id, e.body from unnest(v_events) e;
end $$;
