-- Promises: a fact is inserted once and never changed. (stream_id, version) is the only optimistic lock.

-- Added to transaction ids: those of two servers are not comparable, and a moved or restored database would write new facts below
-- old ones, unread (continue_log.sql).
create table log_base (
  one boolean primary key default true check (one),
  base bigint not null default 0,
  -- The server on which the log was last continued; null where it does not tell.
  system_identifier bigint,
  timeline int,
  -- The time of the file that a start on a base backup leaves.
  backup timestamptz
);
insert into log_base default values;

create sequence event_position cache 1000;
create table event (
  stream_id uuid not null,
  stream text,
  tx bigint not null,
  position bigint not null default nextval('event_position'::regclass),
  at timestamptz not null,
  actor text,
  version int not null,
  name text not null,
  data json not null,
  -- Of facts that the audit of an org lists.
  org_id text,
  primary key (stream_id, version)
);
create index event_audit on event (org_id, at, stream_id, version) where org_id is not null;
create index event_order on event (tx, "position");

-- One row for each message, as long as its first fact. What may be erased of a message stands here and in `detail` only.
create table message (
  id uuid primary key,
  org_id text not null,
  channel text not null,
  destination uuid not null,
  recipient text,
  event_type text,
  dossier_id text,
  correlation_id text,
  metadata jsonb,
  accepted_at timestamptz not null,
  -- The first fact as a whole; once the message is erased, as `event` has it.
  data json not null,
  -- The text to deliver, or the event whose text it is; neither once erased.
  body text,
  event_id uuid,
  check (body is null or event_id is null)
);
create index message_of_recipient on message (org_id, recipient, accepted_at, id) where recipient is not null;
create index message_of_dossier on message (org_id, dossier_id, accepted_at, id) where dossier_id is not null;
create index message_of_correlation on message (org_id, correlation_id, accepted_at, id) where correlation_id is not null;
create index message_of_metadata on message using gin (metadata jsonb_path_ops) where metadata is not null;
create index message_of_event on message (event_id) where event_id is not null;

-- Beside a fact of any stream: its part that may be erased, and the answer to an attempt.
create table detail (
  stream_id uuid not null,
  version int not null,
  data json,
  -- The fact's actor, where it can name a person.
  actor text,
  epoch int,
  attempt int,
  body text,
  headers json,
  primary key (stream_id, version)
);
create index detail_of_provider on detail ((data ->> 'providerMessageId')) where (data ->> 'providerMessageId') is not null;

create table idempotency (
  org_id text not null,
  key text not null,
  message_id uuid not null,
  request_hash text not null,
  primary key (org_id, key)
);
create index idempotency_of_message on idempotency (message_id);
