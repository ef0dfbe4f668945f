-- Promises: an event is stored with its key, its body and a message for each endpoint that wants it, in one transaction. Its body is
-- stored once, and stays as long as the event or one of its messages has it.

-- One row for each event; its facts are on the journal event-<id>, whose stream is `stream_id`.
create table publication (
  id uuid primary key,
  stream_id uuid not null,
  org_id text not null,
  event_type text not null,
  correlation_id text,
  dossier_id text,
  at timestamptz not null,
  metadata jsonb
);
create index publication_newest on publication (org_id, at desc, id desc);
create index publication_of_type on publication (org_id, event_type, at desc, id desc);
create index publication_of_correlation on publication (org_id, correlation_id, at desc, id desc) where correlation_id is not null;
create index publication_of_dossier on publication (org_id, dossier_id, at desc, id desc) where dossier_id is not null;
create index publication_age on publication (at, id);
create index publication_of_metadata on publication using gin (metadata jsonb_path_ops) where metadata is not null;

-- Keys of events and of messages are apart.
create table event_idempotency (
  org_id text not null,
  key text not null,
  event_id uuid not null,
  request_hash text not null,
  primary key (org_id, key)
);
create index event_idempotency_of_event on event_idempotency (event_id);

-- `held`: by the event itself. See free_shared_bodies.
create table shared_body (
  event_id uuid primary key,
  body text not null,
  held boolean not null default true
);

-- An event becomes at most one message for each destination: the row stays when the message is forgotten, and goes with the event.
create table fan_out (
  event_id uuid not null,
  destination uuid not null,
  message_id uuid not null,
  primary key (event_id, destination)
);

-- An org's catalogue: an archived entry keeps its name. A prepared schema is good as long as the version stays.
create table event_type (
  id uuid primary key,
  org_id text not null,
  name text not null,
  version int not null,
  description text,
  schema json,
  example json,
  enforce boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  archived_at timestamptz,
  unique (org_id, name)
);
create index event_type_enforced on event_type (org_id) where (enforce and (archived_at is null));

-- One event, as the function publish_events is told it.
create type published_event as (
  id uuid, stream_id uuid, org text, event_type text, correlation text, dossier text, key text, hash text,
  at_ms bigint, actor text, whole_actor text, name text, data text, forgettable text, body text
);
