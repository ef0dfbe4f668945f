-- Promises: a change of configuration and the facts that tell of it commit together. Audit, timelines and open withdrawals are
-- derived, live in generations like every projection, and lose a message when it is forgotten.

-- Facts at the end of a journal, whatever stands there. Called for a row that the same statement has just changed, so that
-- whoever changes it next waits for this one and finds its facts; the primary key would refuse anybody who did not.
create function posthaste.note(p_journal text, p_stream uuid, p_names text[], p_data text[], p_at timestamptz, p_actor text)
returns void
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  insert into event (stream_id, stream, tx, at, actor, version, name, data)
    select p_stream, p_journal, pg_current_xact_id()::text::bigint, p_at, p_actor,
      (select coalesce(max(e.version), 0) from event e where e.stream_id = p_stream) + f.n, f.name, f.data::json
    from unnest(p_names, p_data) with ordinality f(name, data, n);
end $$;

-- The projection `audit`. A message's stream is its id, so the key also finds the entries of a message.
create table posthaste.audit (
  generation int not null,
  stream_id uuid not null,
  version int not null,
  org_id text not null,
  at timestamptz not null,
  operation text not null,
  subject_type text not null,
  subject_id text not null,
  channel text,
  actor text,
  correlation_id text,
  dossier_id text,
  details json not null,
  primary key (generation, stream_id, version)
);
create index audit_newest on posthaste.audit (generation, org_id, at desc, stream_id desc, version desc);
create index audit_of_dossier on posthaste.audit (generation, org_id, dossier_id, at desc) where dossier_id is not null;
create index audit_of_correlation on posthaste.audit (generation, org_id, correlation_id, at desc) where correlation_id is not null;
-- What nearly every message does is found by the list itself.
create index audit_of_operation on posthaste.audit (generation, org_id, operation, at desc)
  where operation not in ('CREATED', 'SENT', 'UPDATED');

-- Answers false, and changes nothing, when another projector was faster. Texts arrive joined by U+001E, which none of them
-- holds; an empty one is null.
create function posthaste.project_audit(
  p_generation int, p_from text, p_to text, p_facts int,
  p_streams uuid[], p_versions int[], p_at_ms bigint[], p_orgs text, p_operations text, p_subject_types text,
  p_subject_ids text, p_channels text, p_actors text, p_correlations text, p_dossiers text, p_details text
) returns boolean
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
begin
  if not advance_projection('audit', p_generation, p_from, p_to, p_facts) then return false; end if;
  if cardinality(p_streams) = 0 then return true; end if;
  insert into audit (generation, stream_id, version, org_id, at, operation, subject_type, subject_id, channel, actor,
      correlation_id, dossier_id, details)
    select p_generation, n.stream_id, n.version, n.org_id, 'epoch'::timestamptz + n.at_ms * interval '1 millisecond', n.operation,
      n.subject_type, n.subject_id, n.channel, n.actor, n.correlation_id, n.dossier_id, n.details::json
    from unnest(p_streams, p_versions, p_at_ms, string_to_array(p_orgs, E'\x1e'), string_to_array(p_operations, E'\x1e'),
        string_to_array(p_subject_types, E'\x1e'), string_to_array(p_subject_ids, E'\x1e'),
        string_to_array(p_channels, E'\x1e', ''), string_to_array(p_actors, E'\x1e', ''),
        string_to_array(p_correlations, E'\x1e', ''), string_to_array(p_dossiers, E'\x1e', ''),
        string_to_array(p_details, E'\x1e'))
      n(stream_id, version, at_ms, org_id, operation, subject_type, subject_id, channel, actor, correlation_id, dossier_id, details)
    where not exists (select 1 from forgotten f where f.message_id = n.stream_id)
  on conflict do nothing;
  return true;
end $$;

-- The projection `activity`, and with it the withdrawals that are not applied: whoever sees one sees all that was accepted before it.
create table posthaste.activity (
  generation int not null,
  stream_id uuid not null,
  version int not null,
  org_id text not null,
  dossier_id text not null,
  at timestamptz not null,
  activity text not null,
  channel text not null,
  message_id uuid,
  actor text,
  details json not null,
  primary key (generation, stream_id, version)
);
create index activity_of_dossier on posthaste.activity (generation, org_id, dossier_id, at desc, stream_id desc, version desc);

create index activity_messages on posthaste.activity (generation, org_id, dossier_id, channel, message_id)
  where activity = 'MESSAGE_CREATED';

create table posthaste.withdrawal (
  generation int not null,
  org_id text not null,
  dossier_id text not null,
  channel text not null,
  version int not null,
  open boolean not null,
  primary key (generation, org_id, dossier_id, channel)
);
create index withdrawal_open on posthaste.withdrawal (generation) where open;

create function posthaste.project_activity(
  p_generation int, p_from text, p_to text, p_facts int,
  p_streams uuid[], p_versions int[], p_at_ms bigint[], p_orgs text, p_dossiers text, p_activities text, p_channels text,
  p_messages uuid[], p_actors text, p_details text,
  p_withdrawals json
) returns boolean
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
begin
  if not advance_projection('activity', p_generation, p_from, p_to, p_facts) then return false; end if;
  if cardinality(p_streams) > 0 then
    insert into activity (generation, stream_id, version, org_id, dossier_id, at, activity, channel, message_id, actor, details)
      select p_generation, n.stream_id, n.version, n.org_id, n.dossier_id, 'epoch'::timestamptz + n.at_ms * interval '1 millisecond',
        n.activity, n.channel, n.message_id, n.actor, n.details::json
      from unnest(p_streams, p_versions, p_at_ms, string_to_array(p_orgs, E'\x1e'), string_to_array(p_dossiers, E'\x1e'),
          string_to_array(p_activities, E'\x1e'), string_to_array(p_channels, E'\x1e'), p_messages,
          string_to_array(p_actors, E'\x1e', ''), string_to_array(p_details, E'\x1e'))
        n(stream_id, version, at_ms, org_id, dossier_id, activity, channel, message_id, actor, details)
      where not exists (select 1 from forgotten f where f.message_id = n.stream_id)
    on conflict do nothing;
  end if;
  insert into withdrawal as w (generation, org_id, dossier_id, channel, version, open)
    -- The last word of each.
    select distinct on (n.org_id, n.dossier_id, n.channel) p_generation, n.org_id, n.dossier_id, n.channel, n.version, n.open
    from json_to_recordset(p_withdrawals) n(org_id text, dossier_id text, channel text, version int, open boolean)
    order by n.org_id, n.dossier_id, n.channel, n.version desc
  on conflict (generation, org_id, dossier_id, channel) do update set version = excluded.version, open = excluded.open
    where w.version < excluded.version;
  return true;
end $$;

create function posthaste.forget_entries() returns trigger
language plpgsql set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  delete from audit a using (select p.generation, g.message_id from projection p cross join gone g where p.name = 'audit') g
    where a.generation = g.generation and a.stream_id = g.message_id;
  delete from activity a using (select p.generation, g.message_id from projection p cross join gone g where p.name = 'activity') g
    where a.generation = g.generation and a.stream_id = g.message_id;
  return null;
end $$;
create trigger forget_entries after insert on posthaste.forgotten referencing new table as gone
  for each statement execute function posthaste.forget_entries();
