-- The operator's settings of an org. The lanes of a suspended org follow in the same transaction (copy_settings_to_lane).
create table org (
  id text primary key,
  name text,
  suspended text,
  limits jsonb not null default '{}'::jsonb,
  updated_at timestamptz not null,
  -- For messages and destinations that have none; null: as their channels say.
  retry jsonb,
  -- endedDays and deadLetterDays; missing: as the installation says.
  retention jsonb not null default '{}'::jsonb
);

-- Promises: an API key is stored only hashed.
create table api_key (
  id uuid primary key,
  org_id text not null,
  name text not null,
  key_hash text not null,
  created_at timestamptz not null,
  revoked_at timestamptz,
  -- Null: all scopes.
  scopes text[],
  expires_at timestamptz,
  networks text[],
  prefix text,
  -- Written at most once a minute.
  last_used_at timestamptz,
  -- Requests a second of each process.
  limits jsonb not null default '{}'::jsonb,
  unique (key_hash)
);
create index api_key_of_org on api_key (org_id) where revoked_at is null;

-- A value that only the encryption key of this database opens, so that a start with another key is refused.
create table encryption_check (
  one boolean primary key default true check (one),
  sealed text not null
);
