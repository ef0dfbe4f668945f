-- Promises: waiting and claimed messages, and what a lane may hand out, agree with the facts at every commit.

-- Messages that wait: inserted and deleted, never updated. Its one index is the claim order.
create table ready (
  lane uuid not null,
  due_at timestamptz not null,
  message_id uuid not null,
  version int not null,
  epoch int not null,
  attempt int not null,
  primary key (lane, due_at, message_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- When a lane is worth visiting. ready_at is never later than its first due message (see claim_due); pause, circuit and rate limit come
-- on top. Lanes with nothing to hand out lie beyond now() in lane_next_claim and are not touched. A visited lane goes to the back.
create table lane (
  lane uuid primary key,
  ready_at timestamptz not null,
  -- By copy_settings_to_lane.
  paused boolean not null default false,
  rate_limit int,
  rate_period_ms int,
  -- How long a probe may take; null without settings of a destination.
  permit_ms int,
  -- Whether a dead letter blocks its line.
  blocks boolean not null default false,
  -- Nothing leaves before: by the rate limit (rate_allowance.sql), or because the destination deferred the lane.
  next_slot_at timestamptz,
  -- generation is the number of facts on the circuit's stream.
  circuit text not null default 'CLOSED' check ((circuit = ANY (ARRAY['CLOSED', 'OPEN', 'HALF_OPEN', 'HELD']))),
  generation int not null default 0,
  failures int not null default 0,
  blocked_until timestamptz,
  in_flight_max int,
  circuit_stream uuid,
  next_claim_at timestamptz not null generated always as (
CASE
    WHEN (paused OR (circuit = 'HELD')) THEN 'infinity'::timestamptz
    ELSE GREATEST(ready_at, blocked_until, next_slot_at)
END) stored,
  org_id text,
  -- No message of the lane is due before. A claim begins there: from the front of the index it walked past all deleted rows, which
  -- can't be vacuumed while any transaction is open.
  first_due_at timestamptz not null default '-infinity'::timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index lane_next_claim on lane (next_claim_at);
create index lane_of_nobody on lane (lane) where org_id is null;

create table claim (
  batch uuid primary key,
  worker text not null,
  lease_until timestamptz not null,
  messages uuid[] not null,
  lanes uuid[] not null,
  dues timestamptz[] not null,
  versions int[] not null,
  epochs int[] not null,
  attempts int[] not null
) with (fillfactor = 50);

create sequence line_entry_nth;
create table line_entry (
  message_id uuid primary key,
  lane uuid not null,
  line text not null,
  nth bigint not null default nextval('line_entry_nth'::regclass),
  state text not null check ((state = ANY (ARRAY['WAITING', 'GIVEN', 'DEAD']))),
  due_at timestamptz not null,
  version int not null,
  epoch int not null,
  attempt int not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create unique index line_entry_order on line_entry (lane, line, nth);

-- Streams that can't be processed, each until it is tried again.
create table parked (
  stream text primary key,
  reason text not null,
  at timestamptz not null default clock_timestamp()
);
