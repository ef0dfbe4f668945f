-- Promises: a secret is stored only encrypted; a public key belongs to one living destination of its channel over all orgs; a
-- removed destination keeps its row so that old streams stay explainable, and loses its secrets and headers.
create table destination (
  id uuid primary key,
  org_id text not null,
  channel text not null,
  version int not null,
  paused boolean not null default false,
  -- Headers are sealed together.
  settings jsonb not null,
  -- By name, each sealed for this destination and name.
  secrets jsonb not null,
  -- Its name outside, such as the id of a phone number at Meta.
  public_key text,
  -- A keyed hash: sealed values can't be looked up.
  lookup_hash bytea,
  -- Of an alert target; stays when it is removed.
  alerting jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  removed_at timestamptz,
  -- Rotated secrets, the newest first: name, sealed, until.
  previous_secrets jsonb not null default '[]'::jsonb,
  -- Public halves of secrets, by name.
  published jsonb not null default '{}'::jsonb,
  -- A disabled destination hands out nothing; failures count from its last enabling.
  disabled_reason text,
  enabled_at timestamptz
);
create index destination_of_org on destination (org_id, id) where removed_at is null;
create unique index destination_with_public_key on destination (channel, public_key) where removed_at is null;
create index destination_with_lookup on destination (lookup_hash) where removed_at is null;
create index alert_target on destination (id) where ((removed_at is null) and (alerting is not null));
-- For retention.
create index destination_removed on destination (removed_at, id) where removed_at is not null;

-- Types of events that a destination wants: a type, the beginning of types (`order.*`), or all (`*`). Kept by the trigger subscribe.
create table subscription (
  org_id text not null,
  pattern text not null,
  destination uuid not null,
  primary key (org_id, pattern, destination)
);
create index subscription_of_destination on subscription (destination);

-- The projection `health`: a row of state for each destination, and one for each five minutes of the last day in which an attempt ended.
create table health (
  generation int not null,
  destination uuid not null,
  -- Of the attempts since the last success; null after a success.
  failing_since timestamptz,
  last_failed_at timestamptz,
  last_succeeded_at timestamptz,
  primary key (generation, destination)
) with (fillfactor = 70);
create index health_failing on health (generation, destination) where failing_since is not null;

create table health_bucket (
  generation int not null,
  destination uuid not null,
  starts_at timestamptz not null,
  succeeded int not null,
  failed int not null,
  -- Attempts by the bounds of src/domain/delivery/health.ts.
  latencies int[] not null,
  primary key (generation, destination, starts_at)
) with (fillfactor = 70);
