-- Promises: a fact is inserted once and never changed. (stream_id, version) is the only optimistic lock.

-- Transaction ids of two servers are not comparable: a database that was moved or restored would write new facts below old
-- ones, where no reader looks any more. So the order of the log has a base, which is added to every transaction id, and
-- which whoever moves a database raises above all that is stored. One row.
create table log_base (
  one boolean primary key default true check (one),
  base bigint not null default 0,
  -- Which server the order of the log was last continued on, so that another one is noticed (see continue_log). Null: no server
  -- has said so yet, or it does not tell.
  system_identifier bigint,
  timeline int,
  -- Where PostgreSQL was started on a base backup, it leaves a file that says so. Its time, where we may look.
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
  -- Of the facts that the audit of an org lists: its name.
  org_id text,
  primary key (stream_id, version)
);
create index event_audit on event (org_id, at, stream_id, version) where org_id is not null;
create index event_order on event (tx, "position");

-- A message has one row, written with its first fact and gone with it. What may be erased of a message stands here and in `detail`, and
-- nowhere else.
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
  -- The text to deliver, or the event whose text it is; neither, once it is erased.
  body text,
  event_id uuid,
  check (body is null or event_id is null)
);
create index message_of_recipient on message (org_id, recipient, accepted_at, id) where recipient is not null;
create index message_of_dossier on message (org_id, dossier_id, accepted_at, id) where dossier_id is not null;
create index message_of_correlation on message (org_id, correlation_id, accepted_at, id) where correlation_id is not null;
create index message_of_metadata on message using gin (metadata jsonb_path_ops) where metadata is not null;
create index message_of_event on message (event_id) where event_id is not null;

-- Beside a fact of any stream: the part of it that may be erased, and the answer to an attempt that came with it.
create table detail (
  stream_id uuid not null,
  version int not null,
  data json,
  -- In place of the actor of the fact, where that one can name a person.
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
  at timestamptz not null,
  primary key (org_id, key)
);
-- To forget a message is to forget its key.
create index idempotency_of_message on idempotency (message_id);
