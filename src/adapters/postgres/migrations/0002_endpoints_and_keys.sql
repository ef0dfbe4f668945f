-- Promises: a secret is stored only encrypted, a key only hashed; a removed endpoint keeps its row so that old streams stay explainable.
create table posthaste.endpoint (
  id uuid primary key,
  org_id text not null,
  version int not null,
  settings jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  removed_at timestamptz
);
create index endpoint_of_org on posthaste.endpoint (org_id, id) where removed_at is null;

create table posthaste.endpoint_secret (
  endpoint_id uuid not null references posthaste.endpoint (id),
  number int not null,
  sealed bytea not null,
  created_at timestamptz not null,
  retires_at timestamptz,
  primary key (endpoint_id, number)
);

create table posthaste.api_key (
  id uuid primary key,
  org_id text not null,
  name text not null,
  key_hash text not null unique,
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index api_key_of_org on posthaste.api_key (org_id) where revoked_at is null;
