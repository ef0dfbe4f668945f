-- Promises: what the operator has set for an org. An org without a row has no settings. What a suspension holds back is in the lanes
-- (copy_settings_to_lane), which follow in the same transaction.
create table org (
  id text primary key,
  name text,
  suspended text,
  limits jsonb not null default '{}'::jsonb,
  updated_at timestamptz not null,
  -- The retry policy of messages that bring none, to destinations that have none; null: as their channels say.
  retry jsonb,
  -- For how many days what ended of an org is kept, well (endedDays) and as a dead letter (deadLetterDays); what is not named: as long as
  -- the installation keeps it.
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
  -- Promises: a key without scopes may what keys could before there were any; what is null holds nothing back.
  scopes text[],
  expires_at timestamptz,
  networks text[],
  prefix text,
  -- Written at most once a minute.
  last_used_at timestamptz,
  -- What a key may ask of each process in a second; a limit that is not named is none.
  limits jsonb not null default '{}'::jsonb,
  unique (key_hash)
);
create index api_key_of_org on api_key (org_id) where revoked_at is null;

-- Promises: a value that only the encryption key of this database opens, so that another key is refused at the start, before it
-- seals anything or fails to open something. One row.
create table encryption_check (
  one boolean primary key default true check (one),
  sealed text not null
);
