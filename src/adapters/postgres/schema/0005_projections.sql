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
create unique index projection_build on projection (name) where not live;
insert into projection (name) values ('messages');

-- The projection `messages`: the list of messages and the counts of it.
create table message_view (
  id uuid not null,
  generation int not null,
  org_id text not null,
  version int not null,
  status text not null,
  channel text not null,
  recipient text not null,
  event_type text,
  dossier_id text,
  correlation_id text,
  created_at timestamptz not null,
  -- When the epoch ended, and of a dead letter why.
  ended_at timestamptz,
  error_code text,
  view json not null,
  primary key (id, generation)
) with (fillfactor = 80);
create index message_view_newest on message_view (generation, org_id, created_at desc, id desc);
create index message_view_status on message_view (generation, org_id, status, created_at desc, id desc);
create index message_view_dead on message_view (generation, org_id, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER');
create index message_view_dead_of on message_view (generation, org_id, recipient, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER');

create table message_count (
  generation int not null,
  org_id text not null,
  channel text not null,
  status text not null,
  count bigint not null,
  primary key (generation, org_id, channel, status)
) with (fillfactor = 50);

-- The projection `audit`. A message's stream is its id, so the key also finds the entries of a message.
create table audit (
  generation int not null,
  stream_id uuid not null,
  version int not null,
  org_id text not null,
  at timestamptz not null,
  operation text not null,
  subject_type text not null,
  subject_id text not null,
  channel text,
  actor text,
  correlation_id text,
  dossier_id text,
  details json not null,
  primary key (generation, stream_id, version)
);
create index audit_newest on audit (generation, org_id, at desc, stream_id desc, version desc);
create index audit_of_dossier on audit (generation, org_id, dossier_id, at desc) where dossier_id is not null;
create index audit_of_correlation on audit (generation, org_id, correlation_id, at desc) where correlation_id is not null;
-- What nearly every message does is found by the list itself.
create index audit_of_operation on audit (generation, org_id, operation, at desc)
  where operation not in ('CREATED', 'SENT', 'UPDATED');

-- The projection `activity`, and with it the withdrawals that are not applied: whoever sees one sees all that was accepted before it.
create table activity (
  generation int not null,
  stream_id uuid not null,
  version int not null,
  org_id text not null,
  dossier_id text not null,
  at timestamptz not null,
  activity text not null,
  channel text not null,
  message_id uuid,
  actor text,
  details json not null,
  primary key (generation, stream_id, version)
);
create index activity_of_dossier on activity (generation, org_id, dossier_id, at desc, stream_id desc, version desc);
create index activity_messages on activity (generation, org_id, dossier_id, channel, message_id)
  where activity = 'MESSAGE_CREATED';

create table withdrawal (
  generation int not null,
  org_id text not null,
  dossier_id text not null,
  channel text not null,
  version int not null,
  open boolean not null,
  primary key (generation, org_id, dossier_id, channel)
);
create index withdrawal_open on withdrawal (generation) where open;

-- Messages that retention removed of late. A projector may hold facts of them that it read before: it must not write them.
create table forgotten_message (
  message_id uuid primary key,
  at timestamptz not null default clock_timestamp()
);
create index forgotten_message_at on forgotten_message (at);
