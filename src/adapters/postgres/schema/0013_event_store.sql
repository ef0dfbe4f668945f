-- Where the streams of messages live in EventStoreDB.

-- One row, only where the streams are elsewhere: how far they were followed, and by which process.
create table stream_follower (
  one boolean primary key default true check (one),
  position text,
  holder text,
  lease_until timestamptz not null default '-infinity'
);

-- An append that brings more than its facts: written before them, gone when the follower has passed them. An opening that is `owed` is
-- finished by any process; another is given up when its facts don't come.
create table append_intent (
  writing text primary key,
  message_id uuid not null,
  opens boolean not null,
  owed boolean not null,
  entry text not null,
  at timestamptz not null default clock_timestamp()
);
create index append_intent_of_message on append_intent (message_id);
create index append_intent_age on append_intent (at);

-- Streams that are to go from EventStoreDB.
create table forgotten_stream (message_id uuid primary key);
