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
  removed_at timestamptz,
  -- Promises: a rotated secret is stored only encrypted, as every secret is, and lies in the row of its destination, so that an
  -- attempt reads one version of both. It names its end of grace beside it.
  -- The newest first: name, sealed (for this destination and name), until.
  previous_secrets jsonb not null default '[]'::jsonb,
  -- Promises: what everybody may know of a destination's secrets, such as the public half of a key that signs, lies in the clear
  -- beside them and changes with them.
  -- By name.
  published jsonb not null default '{}'::jsonb,
  -- Promises: a disabled destination hands out nothing until it is enabled, from the commit that says so on (see
  -- copy_settings_to_lane); what counts against it counts from its last enabling.
  disabled_reason text,
  enabled_at timestamptz
);
create index destination_of_org on destination (org_id, id) where removed_at is null;
create unique index destination_with_public_key on destination (channel, public_key) where removed_at is null;
create index destination_with_lookup on destination (lookup_hash) where removed_at is null;
create index alert_target on destination (id) where ((removed_at is null) and (alerting is not null));
-- Promises: retention finds removed destinations by when they were removed, and lanes that are no destination's, without looking at others.
create index destination_removed on destination (removed_at, id) where removed_at is not null;

-- Which types of events a destination wants: a type, the beginning of types (`order.*`), or all (`*`). Kept by the trigger
-- subscribe. An event looks for its own type, for each of its beginnings, and for all; it reads no other row.
create table subscription (
  org_id text not null,
  pattern text not null,
  destination uuid not null,
  primary key (org_id, pattern, destination)
);
create index subscription_of_destination on subscription (destination);

-- The projection `health`: what became of the attempts at each destination. One row of its state, and one for each five minutes
-- in which an attempt ended, of the last day at most.
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
  -- How many attempts took how long, by the bounds of src/domain/delivery/health.ts.
  latencies int[] not null,
  primary key (generation, destination, starts_at)
) with (fillfactor = 70);
