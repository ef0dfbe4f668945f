-- Promises: derived rows only, each equal to the fold of its stream up to its version; the position moves in the same
-- transaction. The rows belong to a generation, and people see the live one only: another is built beside it and takes its
-- place in one commit. A message that is forgotten leaves all generations, for good.
create table projection (
  name text not null,
  position text,
  generation int not null default 1,
  -- Of the fold that makes these rows.
  version int not null default 1,
  live boolean not null default true,
  -- Facts read so far, about how many there are, and how many a second of late.
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

-- The projection `messages`: where each message stands in the lists. Nothing here names a person: what is searched by such a text is found
-- by the row of the message, and what a list shows is folded from the stream up to this version.
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
  -- Of every message that has not ended: when it ends by itself, which may be never.
  ends_at timestamptz,
  -- When it is to be sent, or to expire.
  due_at timestamptz,
  -- Of the last error.
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

-- Consents that were withdrawn and whose messages may still wait: the journal of each.
create table withdrawal (stream text primary key);

-- How far each follower of the log has read that keeps no rows of its own. One process at a time holds it.
create table follower (
  name text primary key,
  position text,
  holder uuid,
  lease_until timestamptz not null default '-infinity',
  begun boolean not null default false
) with (fillfactor = 50);
insert into follower (name, begun) values ('alerts', true), ('facts', false);
