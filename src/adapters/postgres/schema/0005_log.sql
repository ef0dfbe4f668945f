-- Promises: each derived row equals the fold of its stream up to its version; the position moves in the same transaction. Rows belong to
-- a generation; readers see the live one, and another is built beside it and takes its place in one commit.
create table projection (
  name text not null,
  position text,
  generation int not null default 1,
  -- Of the fold.
  version int not null default 1,
  live boolean not null default true,
  -- Facts read, an estimate of all, and how many a second.
  facts bigint not null default 0,
  total bigint not null default 0,
  rate float8,
  started_at timestamptz not null default clock_timestamp(),
  moved_at timestamptz not null default clock_timestamp(),
  primary key (name, generation)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create unique index projection_live on projection (name) where live;
create unique index projection_build on projection (name) where (NOT live);
insert into projection (name) values ('messages');

-- The projection `messages`: the place of each message in the lists. Nothing here names a person; a list shows the fold of the stream
-- up to this version.
create table message_view (
  id uuid not null,
  generation int not null,
  org_id text not null,
  version int not null,
  status text not null,
  channel text not null,
  destination uuid not null,
  event_type text,
  epoch int not null,
  attempts int not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  -- Of a message that has not ended: when it ends by itself, or infinity.
  ends_at timestamptz,
  due_at timestamptz,
  error_code text,
  replay_id uuid,
  dismissed boolean not null,
  contradicted boolean not null,
  primary key (id, generation)
) with (fillfactor = 80);
create index message_view_of_status on message_view (generation, org_id, status, created_at, id);
create index message_view_dead on message_view (generation, org_id, ended_at, id) where status in ('FAILED', 'DEAD_LETTER');
create index message_view_ends on message_view (generation, ends_at, id) where ends_at is not null;
create index message_view_replay on message_view (generation, replay_id, status) where replay_id is not null;

create table message_count (
  generation int not null,
  org_id text not null,
  channel text not null,
  status text not null,
  count bigint not null,
  primary key (generation, org_id, channel, status)
) with (fillfactor = 50);

-- Journals of withdrawn consents whose messages may still wait.
create table withdrawal (stream text primary key);

-- Followers of the log without rows of their own; one process at a time holds each.
create table follower (
  name text primary key,
  position text,
  holder uuid,
  lease_until timestamptz not null default '-infinity',
  begun boolean not null default false
) with (fillfactor = 50);
insert into follower (name, begun) values ('alerts', true), ('facts', false);
