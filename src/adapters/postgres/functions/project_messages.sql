-- Answers false, and changes nothing, when another projector was faster. Views are joined by U+001E, which no JSON text holds.
create or replace function project_messages(
  p_generation int, p_from text, p_to text, p_facts int,
  p_ids uuid[], p_orgs text[], p_versions int[], p_statuses text[], p_channels text[], p_recipients text[],
  p_event_types text[], p_dossiers text[], p_correlations text[], p_created timestamptz[],
  p_ended timestamptz[], p_ends timestamptz[], p_error_codes text[], p_metadata text[], p_replays uuid[], p_views text
) returns boolean
language plpgsql volatile
as $$
begin
  if not advance_projection('messages', p_generation, p_from, p_to, p_facts) then return false; end if;
  if cardinality(p_ids) = 0 then return true; end if;
  -- What a view takes the place of is looked up once, by its id alone: the statistics may know no row of this generation yet,
  -- and a plan that trusts them, or one that was kept from when the table was empty, reads all of another index for each view.
  -- So the plan is made each time, which takes a fiftieth of the step. Nobody else writes here while the run is held, so the
  -- counts change by exactly what the rows change by.
  with new as (
    select n.*, old.version as old_version, old.status as old_status
    from unnest(p_ids, p_orgs, p_versions, p_statuses, p_channels, p_recipients, p_event_types, p_dossiers,
        p_correlations, p_created, p_ended, p_ends, p_error_codes, p_metadata, p_replays, string_to_array(p_views, E'\x1e'))
      n(id, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id, created_at,
        ended_at, ends_at, error_code, metadata, replay_id, view)
    left join lateral (
      select v.version, v.status from message_view v where v.id = n.id and v.generation + 0 = p_generation limit 1
    ) old on true
    where old.version is null or old.version < n.version
  ), written as (
    insert into message_view (generation, id, org_id, version, status, channel, recipient, event_type, dossier_id,
        correlation_id, created_at, ended_at, ends_at, error_code, entries, replay_id, view)
      select p_generation, n.id, n.org_id, n.version, n.status, n.channel, n.recipient, n.event_type, n.dossier_id,
        n.correlation_id, n.created_at, n.ended_at,
        -- Every message that has not ended has one, and none that has.
        case when n.status in ('QUEUED', 'SENDING') then coalesce(n.ends_at, 'infinity') end, n.error_code,
        case when n.metadata is not null then
          array(select md5(concat_ws(E'\x1f', n.org_id, e.key, e.value))::uuid from jsonb_each_text(n.metadata::jsonb) e)
        end, n.replay_id, n.view::json
      from new n
    on conflict (id, generation) do update set version = excluded.version, status = excluded.status,
        ended_at = excluded.ended_at, ends_at = excluded.ends_at, error_code = excluded.error_code,
        replay_id = excluded.replay_id, view = excluded.view
  ), summed as (
    select d.org_id, d.channel, d.status, sum(d.n) as n from (
      select org_id, channel, status, 1 as n from new
      union all
      select org_id, channel, old_status, -1 from new where old_version is not null
    ) d group by d.org_id, d.channel, d.status having sum(d.n) <> 0
  )
  insert into message_count (generation, org_id, channel, status, count)
    select p_generation, s.org_id, s.channel, s.status, s.n from summed s
  on conflict (generation, org_id, channel, status) do update set count = message_count.count + excluded.count;
  perform erase_again(p_ids);
  return true;
end $$;
