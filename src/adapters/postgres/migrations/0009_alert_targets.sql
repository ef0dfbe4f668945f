-- Promises: an alert target has the id of the destination that was made for it and lives as long; that a destination was one is
-- never forgotten. How far alerting has read the log and what it told of lately change together.

create table posthaste.alert_target (
  id uuid primary key,
  org_id text not null,
  type text not null,
  settings jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index alert_target_of_org on posthaste.alert_target (org_id, id);

-- Living targets: those whose destination was not removed.
create view posthaste.living_alert_target as
  select t.* from posthaste.alert_target t
  where exists (select 1 from posthaste.endpoint e where e.id = t.id and e.removed_at is null)
    or exists (select 1 from posthaste.http_target h where h.id = t.id and h.removed_at is null);

-- One row.
create table posthaste.alert_progress (one boolean primary key default true check (one), position text);
insert into posthaste.alert_progress (position) values (null);

-- That a target was told of a dead letter of a destination, and when that one died.
create table posthaste.alert_notice (
  target_id uuid not null,
  destination uuid not null,
  at timestamptz not null,
  primary key (destination, target_id)
);
create index alert_notice_age on posthaste.alert_notice (at);

-- Answers false, and changes nothing, when another reader was faster.
create function posthaste.advance_alerts(
  p_from text, p_to text, p_targets uuid[], p_destinations uuid[], p_ats timestamptz[], p_forget timestamptz
) returns boolean
language plpgsql volatile set search_path = posthaste, pg_temp as $$
begin
  update alert_progress set position = p_to where position is not distinct from p_from;
  if not found then return false; end if;
  delete from alert_notice where at < p_forget;
  insert into alert_notice (target_id, destination, at)
    select * from unnest(p_targets, p_destinations, p_ats)
  on conflict (destination, target_id) do update set at = excluded.at;
  return true;
end $$;
