-- Promises: an event is stored together with its key, its body and a message for each endpoint that wanted it, in one
-- transaction. Its body is stored once, for the event and all its messages, and stays as long as one of them has it.

-- One row for each event; its facts are on the journal event-<id>, whose stream is `stream_id`.
create table publication (
  id uuid primary key,
  stream_id uuid not null,
  org_id text not null,
  event_type text not null,
  correlation_id text,
  dossier_id text,
  at timestamptz not null
);
create index publication_newest on publication (org_id, at desc, id desc);
create index publication_of_type on publication (org_id, event_type, at desc, id desc);
create index publication_of_correlation on publication (org_id, correlation_id, at desc, id desc) where correlation_id is not null;
create index publication_of_dossier on publication (org_id, dossier_id, at desc, id desc) where dossier_id is not null;
create index publication_age on publication (at, id);

-- A key of events is none of messages: each kind has its own.
create table event_idempotency (
  org_id text not null,
  key text not null,
  event_id uuid not null,
  request_hash text not null,
  primary key (org_id, key)
);
create index event_idempotency_of_event on event_idempotency (event_id);

-- That an event became a message for a destination: at most one each. The row stays when the message is forgotten, so that
-- nothing is sent twice, and goes with the event.
create table fan_out (
  event_id uuid not null,
  destination uuid not null,
  message_id uuid not null,
  primary key (event_id, destination)
);

-- The text that an event and its messages have in common. `held`: by the event itself. See free_shared_bodies.
create table shared_body (
  event_id uuid primary key,
  body text not null,
  held boolean not null default true
);

-- A message has a text of its own, or that of its event. (Not validated: every row there was has a text.)
alter table body alter column body drop not null;
alter table body add column event_id uuid;
alter table body add constraint body_is_own_or_shared check ((body is null) <> (event_id is null)) not valid;
create index body_of_event on body (event_id) where event_id is not null;

-- Which types of events a destination wants: a type, the beginning of types (`order.*`), or all (`*`). Kept by the trigger
-- subscribe. An event looks for its own type, for each of its beginnings, and for all; it reads no other row.
create table subscription (
  org_id text not null,
  pattern text not null,
  destination uuid not null,
  primary key (org_id, pattern, destination)
);
create index subscription_of_destination on subscription (destination);
insert into subscription (org_id, pattern, destination)
  select distinct d.org_id, wanted.pattern, d.id
  from destination d
  cross join lateral (
    select jsonb_array_elements_text(d.settings -> 'eventTypes') as pattern where jsonb_typeof(d.settings -> 'eventTypes') = 'array'
    union all select '*' where jsonb_typeof(d.settings -> 'eventTypes') = 'null'
  ) wanted
  where d.removed_at is null and d.alerting is null;

-- Where the streams of messages are in EventStoreDB: messages of events that are stored and whose own streams may not be there yet.
create table owed_message (
  message_id uuid primary key,
  event_id uuid not null,
  name text not null,
  data json not null,
  actor text,
  at timestamptz not null,
  kept_at timestamptz not null default clock_timestamp()
);
create index owed_message_age on owed_message (kept_at);

alter table forgotten_stream add column stream text;

-- One event, as the function publish_events is told it.
create type published_event as (
  id uuid, stream_id uuid, org text, event_type text, correlation text, dossier text, key text, hash text,
  at_ms bigint, actor text, name text, data text, body text
);
alter type reservation add attribute event uuid;
