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
create index replay_next on replay (next_at) where next_at < 'infinity';

create table replay_item (
  replay_id uuid not null,
  number int not null,
  message_id uuid not null,
  -- The epoch that had ended when it was asked for.
  epoch int not null,
  primary key (replay_id, number)
);
