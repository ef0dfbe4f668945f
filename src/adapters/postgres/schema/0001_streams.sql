-- Promises: a fact is inserted once and never changed. (stream_id, version) is the only optimistic lock.

-- Transaction ids of two servers are not comparable: a database that was moved or restored would write new facts below old
-- ones, where no reader looks any more. So the order of the log has a base, which is added to every transaction id, and
-- which whoever moves a database raises above all that is stored. One row.
create table log_base (one boolean primary key default true check (one), base bigint not null default 0);
insert into log_base default values;

-- All facts. Readers of all streams order by (tx, position) and stay below `log_end()`: a sequence alone would let
-- them step over a transaction that commits late. A message's stream is its id; the stream of anything else (a circuit, a
-- replay, a consent, an endpoint) has a name, and its id is derived from that name.
create sequence event_position cache 1000;
create table event (
  stream_id uuid not null,
  stream text,
  tx bigint not null,
  position bigint not null default nextval('event_position'),
  at timestamptz not null,
  actor text,
  version int not null,
  name text not null,
  data json not null,
  primary key (stream_id, version)
);
create index event_order on event (tx, position);
-- A message is found by the name its provider gave it from the very commit of the fact that tells the name, and for as long
-- as that fact is there. The names stand here, and not only in the domain, because an index on all facts would read the
-- JSON of each: a new shape of either must be added here, in copied_fact and in PostgresProviderMessages.ts.
create index event_provider_message on event ((data ->> 'providerMessageId'))
  where name in ('AttemptSucceeded@1', 'ReceiptRecorded@1', 'ReceiptRecorded@2') and data ->> 'providerMessageId' is not null;

-- What may be erased lives beside the facts.
create table body (message_id uuid primary key, body text not null);
create table response (
  message_id uuid not null,
  epoch int not null,
  attempt int not null,
  body text not null,
  primary key (message_id, epoch, attempt)
);

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
