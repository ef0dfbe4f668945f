-- Promises: where the streams of messages live in EventStoreDB, everything kept here agrees with them. What comes with a
-- fact is written down before the fact; what a fact means for the queue is applied once, whoever does it and how often;
-- and how far the log was followed commits with what was made of it.

-- Copies of the few facts that are looked for here: the first of each message, because a claim hands it out, and those that
-- tell the name a provider gave it. A message that has one is ours, and it is forgotten with its message.
create table copied_fact (
  stream_id uuid not null,
  at timestamptz not null,
  actor text,
  version int not null,
  name text not null,
  data json not null,
  primary key (stream_id, version)
);
create index copied_fact_provider_message on copied_fact ((data ->> 'providerMessageId')) where (name in ('AttemptSucceeded@1', 'ReceiptRecorded@1', 'ReceiptRecorded@2') and ((data ->> 'providerMessageId') is not null));

-- What comes with an append, named by the id of its first event: there before the event, gone when it was applied. One whose
-- event never came is what a crash left behind.
create table append_intent (
  event_id uuid primary key,
  message_id uuid not null,
  version int not null,
  -- A body that takes the place of another one. A first body needs no waiting: nobody is handed it yet.
  body text,
  epoch int,
  attempt int,
  response text,
  at timestamptz not null default clock_timestamp(),
  headers json
);
create index append_intent_of_message on append_intent (message_id);
create index append_intent_age on append_intent (at);

-- The last version of each message whose queue change was applied. Two may come to apply it, whoever appended and whoever
-- follows the log, so a row stays until the log was followed beyond it (log_at) and the first can't come any more (at).
create table applied_change (
  message_id uuid primary key,
  version int not null,
  log_at bigint,
  at timestamptz not null default clock_timestamp()
) with (fillfactor = 80);
create index applied_change_age on applied_change (at);

-- Facts of messages, wherever their streams are: either event or copied_fact has those of a message. For a value that is
-- given, not for a join: a join with it read all of both tables, and a claim took twenty times as long.
create view message_fact as
  select stream_id, version, name, data from event where stream is null
  union all select stream_id, version, name, data from copied_fact;

-- One entry of an append before it is appended, as the function `reserve` is told it.
create type reservation as (
  n int, id uuid, message uuid, expected int, fence uuid, lane uuid, generation int,
  opens boolean, body text, org text, key text, hash text, at_ms bigint,
  epoch int, attempt int, response text, event uuid, line_lane uuid, line text, headers json, personal boolean, fact_key text, queued json
);

-- What stored facts of one message mean here: `copies` are those to be found here too, `erased` the version that erased its
-- body, `move` the queue change of `version`, decided on top of `expected`; each null when there is none.
create type stored_change as (
  ids uuid[], message uuid, expected int, version int, log_at bigint,
  copies json, erased int,
  move text, lane uuid, line text, due_ms bigint, epoch int, attempt int
);
