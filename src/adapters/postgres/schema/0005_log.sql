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
  -- Promises: every filter of the list of messages has an index that gives its messages in the order of the list, or comes with
  -- one that has. An index of what few messages have holds only these.
  -- Of the message's metadata, an md5 for each entry with its org: one org's common entry costs another's search nothing, and an
  -- index holds no long text.
  entries uuid[],
  -- Promises: the same lists in the same order, with less to write for each message. When a waiting message ends is a column, so
  -- that its index reads no JSON; the audit's list grows at its end, where a page that is full is left full.
  ends_at timestamptz,
  -- Promises: what became of the messages of a replay is counted from their rows.
  replay_id uuid,
  primary key (id, generation)
) with (fillfactor = 80);
create index message_view_dead on message_view (generation, org_id, ended_at desc, id desc) where status in ('FAILED', 'DEAD_LETTER');
create index message_view_dead_of on message_view (generation, org_id, recipient, ended_at desc, id desc) where status in ('FAILED', 'DEAD_LETTER');
create index message_view_entries on message_view using gin (entries) where entries is not null;
create index message_view_event_type on message_view (generation, org_id, event_type, created_at desc, id desc) where event_type is not null;
create index message_view_dossier on message_view (generation, org_id, dossier_id, created_at desc, id desc) where dossier_id is not null;
create index message_view_correlation on message_view (generation, org_id, correlation_id, created_at desc, id desc) where correlation_id is not null;
create index message_view_error on message_view (generation, org_id, error_code, created_at desc, id desc) where error_code is not null;
-- Promises: dead letters that want somebody are found without those that were dismissed.
create index message_view_wants_somebody on message_view (generation, org_id, ended_at desc, id desc) where (status in ('FAILED', 'DEAD_LETTER') and ((view ->> 'dismissed') is null));
create index message_view_ends on message_view (generation, ends_at, id) where ends_at is not null;
-- Dead letters in the order of a replay.
create index message_view_dead_accepted on message_view (generation, org_id, created_at, id) where status in ('FAILED', 'DEAD_LETTER');
create index message_view_dead_accepted_of on message_view (generation, org_id, recipient, created_at, id) where status in ('FAILED', 'DEAD_LETTER');
create index message_view_replay on message_view (generation, replay_id, status) where replay_id is not null;
create index message_view_of_status on message_view (generation, org_id, status, created_at, id);
create index message_view_of_recipient on message_view (generation, org_id, recipient, created_at, id) with (fillfactor='50');

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

-- Promises: how far the facts have gone out to the broker. Moved only after the broker has confirmed them, and by one process
-- at a time, so each fact goes out at least once and those of a message in their order.
create table fact_outlet (
  one boolean primary key default true check (one),
  position text,
  holder uuid,
  lease_until timestamptz not null default '-infinity'::timestamptz,
  -- Whether facts have begun to go out: the first time is chosen where they begin, and never again.
  begun boolean not null default false
) with (fillfactor = 50);
insert into fact_outlet default values;
