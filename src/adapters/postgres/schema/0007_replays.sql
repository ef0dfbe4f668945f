-- Promises: a replay's set is fixed when it is asked for. The row makes it happen; its journal tells how far it is.
create table replay (
  id uuid primary key,
  org_id text not null,
  key text,
  request_hash text,
  selection json not null,
  reason text,
  matched int not null,
  requested_at timestamptz not null,
  -- The end of a lease or a pause; infinity once the replay has ended.
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
  -- An event that its destination missed, instead of a message and epoch.
  event_id uuid,
  primary key (replay_id, number),
  check ((((event_id IS NULL) = (message_id IS NOT NULL)) AND ((message_id IS NULL) = (epoch IS NULL))))
);

-- The search for a replay's items. A row of its own: a repeated request waits for writers of the row with its key.
create table replay_search (
  replay_id uuid primary key,
  -- Items found.
  matched int not null default 0,
  searching boolean not null default true,
  -- What the destination wanted at the request.
  event_types text[],
  -- The last message or event that was looked at.
  at timestamptz,
  id uuid
);
