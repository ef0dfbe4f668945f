-- Promises: an API key is stored only hashed.
create table api_key (
  id uuid primary key,
  org_id text not null,
  name text not null,
  key_hash text not null unique,
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index api_key_of_org on api_key (org_id) where revoked_at is null;
