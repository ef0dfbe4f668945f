-- Promises: the rows of a projection belong to a generation, and people see the live one only. Another is built beside it and
-- takes its place in one commit. What is forgotten leaves all of them, for good.

alter table posthaste.projection drop constraint projection_pkey;
alter table posthaste.projection
  add column generation int not null default 1,
  -- Of the fold that makes these rows.
  add column version int not null default 1,
  add column live boolean not null default true,
  -- Read so far, of about so many, and how fast of late.
  add column facts bigint not null default 0,
  add column total bigint not null default 0,
  add column rate float8,
  add column started_at timestamptz not null default clock_timestamp(),
  add column moved_at timestamptz not null default clock_timestamp(),
  add primary key (name, generation);
create unique index projection_live on posthaste.projection (name) where live;
create unique index projection_build on posthaste.projection (name) where not live;
alter table posthaste.projection set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

alter table posthaste.message_view add column generation int not null default 1;
alter table posthaste.message_view alter column generation drop default;
alter table posthaste.message_view drop constraint message_view_pkey, add primary key (id, generation);
drop index posthaste.message_view_newest, posthaste.message_view_status, posthaste.message_view_dead, posthaste.message_view_dead_of;
create index message_view_newest on posthaste.message_view (generation, org_id, created_at desc, id desc);
create index message_view_status on posthaste.message_view (generation, org_id, status, created_at desc, id desc);
create index message_view_dead on posthaste.message_view (generation, org_id, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER');
create index message_view_dead_of on posthaste.message_view (generation, org_id, recipient, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER');

alter table posthaste.message_count add column generation int not null default 1;
alter table posthaste.message_count alter column generation drop default;
alter table posthaste.message_count drop constraint message_count_pkey, add primary key (generation, org_id, channel, status);

-- Messages that retention removed of late. A projector may hold facts of them that it read before: it must not write them.
create table posthaste.forgotten (
  message_id uuid primary key,
  at timestamptz not null default clock_timestamp()
);
create index forgotten_at on posthaste.forgotten (at);

-- Begins a step: whoever gets true holds the run until commit. A statement after it sees whatever was forgotten before.
create function posthaste.advance_projection(p_name text, p_generation int, p_from text, p_to text, p_facts int) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  update projection set position = p_to, facts = facts + p_facts, moved_at = clock_timestamp(),
      -- Over the last ten steps or so.
      rate = coalesce(rate * 0.9, 0) + case when rate is null then 1 else 0.1 end
        * p_facts / greatest(extract(epoch from clock_timestamp() - moved_at), 0.001)
    where name = p_name and generation = p_generation and position is not distinct from p_from;
  return found;
end $$;

-- Answers the build that is under way, or begins one: live at once where nothing is, and in the place of one that an older
-- fold was making, whose rows are nobody's then.
create function posthaste.build_projection(p_name text, p_version int, p_total bigint) returns setof posthaste.projection
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  insert into projection (name, generation, version, live, total) values (p_name, 1, p_version, true, p_total) on conflict do nothing;
  if not found then
    perform 1 from projection p where p.name = p_name order by p.generation for update;
    update projection p set generation = generation + 1, version = p_version, position = null, facts = 0, total = p_total,
        rate = null, started_at = clock_timestamp(), moved_at = clock_timestamp()
      where p.name = p_name and not p.live and p.version < p_version;
    insert into projection (name, generation, version, live, total)
      select p_name, p.generation + 1, p_version, false, p_total from projection p where p.name = p_name and p.live
    on conflict do nothing;
  end if;
  return query select * from projection p where p.name = p_name order by p.live limit 1;
end $$;

create function posthaste.swap_projection(p_name text, p_generation int) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  -- Nobody moves while these are held, so what stands at the same place stays there.
  perform 1 from projection where name = p_name order by generation for update;
  if not exists (
    select 1 from projection l join projection b on b.name = l.name and b.generation = p_generation
    where l.name = p_name and l.live and not b.live and b.position is not distinct from l.position
  ) then
    return false;
  end if;
  delete from projection where name = p_name and live;
  update projection set live = true where name = p_name and generation = p_generation;
  return true;
end $$;

drop function posthaste.project_messages;

-- Answers false, and changes nothing, when another projector was faster. Views are joined by U+001E, which no JSON text holds.
create function posthaste.project_messages(
  p_generation int, p_from text, p_to text, p_facts int,
  p_ids uuid[], p_orgs text[], p_versions int[], p_statuses text[], p_channels text[], p_recipients text[],
  p_event_types text[], p_dossiers text[], p_correlations text[], p_created timestamptz[],
  p_ended timestamptz[], p_error_codes text[], p_views text
) returns boolean
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_custom_plan
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
        p_correlations, p_created, p_ended, p_error_codes, string_to_array(p_views, E'\x1e'))
      n(id, org_id, version, status, channel, recipient, event_type, dossier_id, correlation_id, created_at,
        ended_at, error_code, view)
    left join lateral (
      select v.version, v.status from message_view v where v.id = n.id and v.generation + 0 = p_generation limit 1
    ) old on true
    left join lateral (select true as gone from forgotten f where f.message_id = n.id limit 1) f on true
    where f.gone is null and (old.version is null or old.version < n.version)
  ), written as (
    insert into message_view (generation, id, org_id, version, status, channel, recipient, event_type, dossier_id,
        correlation_id, created_at, ended_at, error_code, view)
      select p_generation, n.id, n.org_id, n.version, n.status, n.channel, n.recipient, n.event_type, n.dossier_id,
        n.correlation_id, n.created_at, n.ended_at, n.error_code, n.view::json
      from new n
    on conflict (id, generation) do update set version = excluded.version, status = excluded.status,
        ended_at = excluded.ended_at, error_code = excluded.error_code, view = excluded.view
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

-- Each projection forgets for itself, in all its generations.
create function posthaste.forget_views() returns trigger
language plpgsql set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  with lost as (
    delete from message_view v using gone g where v.id = g.message_id
    returning v.generation, v.org_id, v.channel, v.status
  ), summed as (
    select l.generation, l.org_id, l.channel, l.status, count(*) as n from lost l group by 1, 2, 3, 4
  )
  update message_count c set count = c.count - s.n from summed s
    where c.generation = s.generation and c.org_id = s.org_id and c.channel = s.channel and c.status = s.status;
  return null;
end $$;
create trigger forget_views after insert on posthaste.forgotten referencing new table as gone
  for each statement execute function posthaste.forget_views();

-- Looks at the next messages of one org in the order they were accepted and forgets those that ended well before
-- p_before. Answers nothing while another sweep is under way; `next_org` null says that all was looked at.
create or replace function posthaste.sweep_ended(
  p_before timestamptz, p_org text, p_created timestamptz, p_id uuid, p_limit int
) returns table (removed int, next_org text, next_created timestamptz, next_id uuid)
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_generation int;
  v_ids uuid[];
  v_seen int;
begin
  if not pg_try_advisory_xact_lock(7699998) then return; end if;
  -- Every projector takes its row first too: so none waits for the other's rows in a circle, and a step that comes after
  -- this sees what was forgotten.
  perform 1 from projection order by name, generation for update;
  v_generation := (select generation from projection where name = 'messages' and live);
  p_org := coalesce(p_org, (select min(org_id) from message_count where generation = v_generation));
  if p_org is null then
    return query select 0, null::text, null::timestamptz, null::uuid;
    return;
  end if;
  select count(*), coalesce(array_agg(v.id) filter (
      where v.status in ('DELIVERED', 'CANCELLED', 'EXPIRED') and v.ended_at < p_before), '{}'),
    max(v.created_at), (array_agg(v.id order by v.created_at desc, v.id desc))[1]
    into v_seen, v_ids, p_created, p_id
    from (
      select id, status, created_at, ended_at from message_view
      where generation = v_generation and org_id = p_org and created_at < p_before
        and (p_created is null or (created_at, id) > (p_created, p_id))
      order by generation desc, org_id desc, created_at, id limit p_limit
    ) v;
  delete from event where stream_id = any (v_ids);
  delete from body where message_id = any (v_ids);
  delete from response where message_id = any (v_ids);
  delete from idempotency where message_id = any (v_ids);
  -- Longer than any projector holds on to what it has read.
  delete from forgotten where at < clock_timestamp() - interval '1 day';
  insert into forgotten (message_id) select unnest(v_ids) on conflict do nothing;
  if v_seen < p_limit then
    p_org := (select min(c.org_id) from message_count c where c.generation = v_generation and c.org_id > p_org);
    p_created := null;
    p_id := null;
  end if;
  return query select cardinality(v_ids), p_org, p_created, p_id;
end $$;
