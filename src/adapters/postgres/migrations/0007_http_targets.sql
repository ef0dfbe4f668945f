-- Promises: a secret is stored only encrypted; a removed target keeps its row so that old streams stay explainable, and loses its secrets.
create table posthaste.http_target (
  id uuid primary key,
  org_id text not null,
  version int not null,
  settings jsonb not null,
  -- By name, each sealed for this target and name. In the row itself, so that settings and the secrets they name change together.
  secrets jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  removed_at timestamptz
);
create index http_target_of_org on posthaste.http_target (org_id, id) where removed_at is null;
create trigger instruct_lane after insert or update of settings, removed_at on posthaste.http_target
  for each row execute function posthaste.instruct_lane();
