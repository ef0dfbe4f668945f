-- Promises: a secret is stored only encrypted; a removed destination keeps its row so that old streams stay explainable, and
-- loses its secrets.

create table endpoint (
  id uuid primary key,
  org_id text not null,
  version int not null,
  paused boolean not null default false,
  settings jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  removed_at timestamptz
);
create index endpoint_of_org on endpoint (org_id, id) where removed_at is null;

create table endpoint_secret (
  endpoint_id uuid not null references endpoint (id),
  number int not null,
  sealed bytea not null,
  created_at timestamptz not null,
  retires_at timestamptz,
  primary key (endpoint_id, number)
);

create table http_target (
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
create index http_target_of_org on http_target (org_id, id) where removed_at is null;

-- A phone number id has one living account over all orgs.
create table whatsapp_account (
  id uuid primary key,
  org_id text not null,
  phone_number_id text not null,
  version int not null,
  paused boolean not null default false,
  settings jsonb not null,
  -- By name, each sealed for this account and name.
  secrets jsonb not null,
  -- A keyed hash: sealed values can't be looked up, and what it is asked by names no account.
  verify_token_hash bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  removed_at timestamptz
);
create index whatsapp_account_of_org on whatsapp_account (org_id, id) where removed_at is null;
create unique index whatsapp_account_of_number on whatsapp_account (phone_number_id) where removed_at is null;
create index whatsapp_account_of_verify_token on whatsapp_account (verify_token_hash) where removed_at is null;

-- An alert target has the id of the destination that was made for it and lives as long; that a destination was one is never
-- forgotten.
create table alert_target (
  id uuid primary key,
  org_id text not null,
  type text not null,
  settings jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index alert_target_of_org on alert_target (org_id, id);

-- Living targets: those whose destination was not removed.
create view living_alert_target as
  select t.* from alert_target t
  where exists (select 1 from endpoint e where e.id = t.id and e.removed_at is null)
    or exists (select 1 from http_target h where h.id = t.id and h.removed_at is null);
