-- Promises: a replay's set is fixed when it is asked for.

-- A job that sends dead letters again. The row is what makes it happen; its journal tells how far it is.
create table replay (
  id uuid primary key,
  org_id text not null,
  key text,
  request_hash text,
  selection json not null,
  reason text,
  matched int not null,
  requested_at timestamptz not null,
  -- Not before then: a lease while somebody works on it, a pause afterwards, never again once it has ended.
  next_at timestamptz not null,
  unique (org_id, key)
);
create index replay_of_org on replay (org_id, id desc);
create index replay_unfinished on replay (org_id) where (next_at < 'infinity'::timestamptz);
create index replay_next on replay (next_at) where (next_at < 'infinity'::timestamptz);

create table replay_item (
  replay_id uuid not null,
  number int not null,
  message_id uuid,
  -- The epoch that had ended when it was asked for.
  epoch int,
  -- Promises: an item of a replay is a dead letter, by message and epoch, or an event that its destination missed.
  event_id uuid,
  primary key (replay_id, number),
  check ((((event_id IS NULL) = (message_id IS NOT NULL)) AND ((message_id IS NULL) = (epoch IS NULL))))
);

-- Promises: a replay is requested with one row, however many it is for; its items are found in stretches, each once.

-- A row of its own: whoever repeats a request waits for whoever changes the row with its key.
create table replay_search (
  replay_id uuid primary key,
  -- How many were found; the number of the items once the search is over.
  matched int not null default 0,
  searching boolean not null default true,
  -- Those that the destination wanted when the events that it missed were asked for.
  event_types text[],
  -- The last that was looked at: when its message was accepted or its event was published, and its id.
  at timestamptz,
  id uuid
);
