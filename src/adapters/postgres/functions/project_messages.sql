-- Answers false, and changes nothing, when another projector was faster. A forgotten message has no row, and gets none here.
create or replace function project_messages(
  p_generation int, p_from text, p_to text, p_facts int,
  p_ids uuid[], p_orgs text[], p_versions int[], p_statuses text[], p_channels text[], p_destinations uuid[], p_event_types text[],
  p_epochs int[], p_attempts int[], p_created timestamptz[], p_updated timestamptz[], p_ended timestamptz[], p_ends timestamptz[],
  p_due timestamptz[], p_error_codes text[], p_replays uuid[], p_dismissed boolean[], p_contradicted boolean[]
) returns boolean
language plpgsql volatile
as $$
begin
  if not advance_projection('messages', p_generation, p_from, p_to, p_facts) then return false; end if;
  if cardinality(p_ids) = 0 then return true; end if;
  -- The held row of the projection keeps out other writers, so counts change as rows do. The row that is replaced is looked up by its id
  -- alone: statistics may know no row of this generation.
  with new as (
    select n.*, old.version as old_version, old.status as old_status
    from unnest(p_ids, p_orgs, p_versions, p_statuses, p_channels, p_destinations, p_event_types, p_epochs, p_attempts, p_created, p_updated,
        p_ended, p_ends, p_due, p_error_codes, p_replays, p_dismissed, p_contradicted)
      n(id, org_id, version, status, channel, destination, event_type, epoch, attempts, created_at, updated_at, ended_at, ends_at, due_at,
        error_code, replay_id, dismissed, contradicted)
    left join lateral (
      select v.version, v.status from message_view v where v.id = n.id and v.generation + 0 = p_generation limit 1
    ) old on true
    where old.version is null or old.version < n.version
  ), written as (
    insert into message_view (generation, id, org_id, version, status, channel, destination, event_type, epoch, attempts, created_at,
        updated_at, ended_at, ends_at, due_at, error_code, replay_id, dismissed, contradicted)
      select p_generation, n.id, n.org_id, n.version, n.status, n.channel, n.destination, n.event_type, n.epoch, n.attempts, n.created_at,
        n.updated_at, n.ended_at, n.ends_at, n.due_at, n.error_code, n.replay_id, n.dismissed, n.contradicted
      from new n
    on conflict (id, generation) do update set version = excluded.version, status = excluded.status, epoch = excluded.epoch,
        attempts = excluded.attempts, updated_at = excluded.updated_at, ended_at = excluded.ended_at, ends_at = excluded.ends_at,
        due_at = excluded.due_at, error_code = excluded.error_code, replay_id = excluded.replay_id, dismissed = excluded.dismissed,
        contradicted = excluded.contradicted
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
  return true;
end $$;
