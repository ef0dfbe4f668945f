-- Promises: a secret is stored only encrypted; a public key belongs to one living destination of its channel over all orgs; a
-- removed destination keeps its row so that old streams stay explainable, and loses its secrets and headers.

create table destination (
  id uuid primary key,
  org_id text not null,
  channel text not null,
  version int not null,
  paused boolean not null default false,
  -- As the channel's record has them; headers are sealed together.
  settings jsonb not null,
  -- By name, each sealed for this destination and name. In the row itself, so that settings and the secrets they name change together.
  secrets jsonb not null,
  -- What the world outside calls it, such as the id of a phone number at Meta.
  public_key text,
  -- A keyed hash: sealed values can't be looked up, and what it is asked by names no destination.
  lookup_hash bytea,
  -- What makes it an alert target. Stays when the destination is removed: that alerts were sent there is never forgotten.
  alerting jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  removed_at timestamptz
);
create index destination_of_org on destination (org_id, id) where removed_at is null;
create unique index destination_with_public_key on destination (channel, public_key) where removed_at is null;
create index destination_with_lookup on destination (lookup_hash) where removed_at is null;
create index alert_target on destination (id) where removed_at is null and alerting is not null;
