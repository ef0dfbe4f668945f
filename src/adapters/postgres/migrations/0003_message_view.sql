-- Promises: derived rows only, each equal to the fold of its stream up to its version; the position moves in the same transaction.
create table posthaste.projection (
  name text primary key,
  position text
);
insert into posthaste.projection (name, position) values ('messages', null);

create table posthaste.message_view (
  id uuid primary key,
  org_id text not null,
  version int not null,
  status text not null,
  channel text not null,
  recipient text not null,
  event_type text,
  dossier_id text,
  correlation_id text,
  created_at timestamptz not null,
  -- When the epoch ended, and of a dead letter why.
  ended_at timestamptz,
  error_code text,
  view json not null
) with (fillfactor = 80);
create index message_view_newest on posthaste.message_view (org_id, created_at desc, id desc);
create index message_view_status on posthaste.message_view (org_id, status, created_at desc, id desc);
create index message_view_dead on posthaste.message_view (org_id, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER');
create index message_view_dead_of on posthaste.message_view (org_id, recipient, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER');

create table posthaste.message_count (
  org_id text not null,
  channel text not null,
  status text not null,
  count bigint not null,
  primary key (org_id, channel, status)
) with (fillfactor = 50);

-- Answers false, and changes nothing, when another projector was faster.
create function posthaste.project_messages(
  p_from text, p_to text,
  p_ids uuid[], p_orgs text[], p_versions int[], p_statuses text[], p_channels text[], p_recipients text[],
  p_event_types text[], p_dossiers text[], p_correlations text[], p_created timestamptz[],
  p_ended timestamptz[], p_error_codes text[], p_views text[]
) returns boolean
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  update projection set position = p_to where name = 'messages' and position is not distinct from p_from;
  if not found then return false; end if;
  -- `old` and the upsert share one snapshot, so the counts change by exactly what the rows change by.
  with new as (
    select * from unnest(p_ids, p_orgs, p_versions, p_statuses, p_channels, p_recipients, p_event_types, p_dossiers,
        p_correlations, p_created, p_ended, p_error_codes, p_views)
      n(id, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id, created_at,
        ended_at, error_code, view)
  ), old as (
    select v.id, v.org_id, v.channel, v.status, v.version from message_view v join new n on n.id = v.id
  ), written as (
    insert into message_view (id, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id,
        created_at, ended_at, error_code, view)
      select n.id, n.org_id, n.version, n.status, n.channel, n.recipient, n.event_type, n.dossier_id, n.correlation_id,
        n.created_at, n.ended_at, n.error_code, n.view::json
      from new n
    on conflict (id) do update set version = excluded.version, status = excluded.status, ended_at = excluded.ended_at,
        error_code = excluded.error_code, view = excluded.view
      where message_view.version < excluded.version
    returning id, org_id, channel, status
  ), delta as (
    select w.org_id, w.channel, w.status, 1 as n from written w
    union all
    select o.org_id, o.channel, o.status, -1 from old o join written w on w.id = o.id
  ), summed as (
    select d.org_id, d.channel, d.status, sum(d.n) as n from delta d group by d.org_id, d.channel, d.status having sum(d.n) <> 0
  )
  insert into message_count (org_id, channel, status, count)
    select s.org_id, s.channel, s.status, s.n from summed s
  on conflict (org_id, channel, status) do update set count = message_count.count + excluded.count;
  return true;
end $$;
