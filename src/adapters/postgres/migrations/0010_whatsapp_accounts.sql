-- Promises: a secret is stored only encrypted; a phone number id has one living account over all orgs; a removed account keeps its
-- row so that old streams stay explainable, and loses its secrets.
create table posthaste.whatsapp_account (
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
create index whatsapp_account_of_org on posthaste.whatsapp_account (org_id, id) where removed_at is null;
create unique index whatsapp_account_of_number on posthaste.whatsapp_account (phone_number_id) where removed_at is null;
create index whatsapp_account_of_verify_token on posthaste.whatsapp_account (verify_token_hash) where removed_at is null;
create trigger instruct_lane after insert or update of settings, paused, removed_at on posthaste.whatsapp_account
  for each row execute function posthaste.instruct_lane();
