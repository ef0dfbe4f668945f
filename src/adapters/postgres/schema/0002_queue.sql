-- Promises: what waits, what is claimed and what a lane may hand out agree with the facts at every commit. The functions
-- `append`, `claim_due`, `put_back`, `release` and `take_over` write these tables; nothing else moves a message.

-- Only what waits. Inserted and deleted, never updated; its one index is the claim order.
create table ready (
  lane uuid not null,
  due_at timestamptz not null,
  message_id uuid not null,
  version int not null,
  epoch int not null,
  attempt int not null,
  primary key (lane, due_at, message_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- When a lane is worth visiting. ready_at is never later than its first due message (see schedule_lanes); what its
-- destination allows comes on top: nothing while it is paused or its circuit is open or held, no more than its rate
-- limit. Lanes that have nothing to hand out now lie beyond now() in lane_next_claim and are not touched. A visited lane
-- goes to the back. A healthy lane is written by its visits alone.
create table lane (
  lane uuid primary key,
  ready_at timestamptz not null,
  -- Set by whoever knows the destination's settings.
  paused boolean not null default false,
  rate_limit int,
  rate_period_ms int,
  -- How long a probe may take; null where no settings of a destination say.
  permit_ms int,
  -- Whether a dead-lettered head of a line blocks the line, or steps aside.
  blocks boolean not null default false,
  -- The lane hands out nothing before: for its rate limit (rate_allowance.sql), or because its destination deferred it.
  next_slot_at timestamptz,
  -- Where the circuit stands. generation is the number of facts on its stream, and changes with them only.
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
  -- A worker that holds enough of an org's messages claims those of other orgs.
  org_id text,
  -- A claim begins where the messages of its lane begin. A row that was deleted stays in its index until it is vacuumed,
  -- and while a transaction elsewhere is open it is not: a claim that began at the front walked past all of them.
  -- No message of the lane is due before first_due_at. It holds by what holds ready_at: see wake_lanes and schedule_lanes.
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


-- Streams that can't be processed, each until it is tried again. Their facts stay where they are.
create table parked (
  stream text primary key,
  reason text not null,
  at timestamptz not null default clock_timestamp()
);
