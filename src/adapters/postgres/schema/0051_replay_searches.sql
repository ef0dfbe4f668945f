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

-- Dead letters in the order of a replay.
create index message_view_dead_accepted on message_view (generation, org_id, created_at, id)
  where status in ('FAILED', 'DEAD_LETTER');
create index message_view_dead_accepted_of on message_view (generation, org_id, recipient, created_at, id)
  where status in ('FAILED', 'DEAD_LETTER');
