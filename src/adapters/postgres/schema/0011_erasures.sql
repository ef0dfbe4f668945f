-- Promises: an erasure goes on whatever crashes, until nothing of whom it is about is found. Whom it is about is forgotten with its end.
create table erasure (
  id uuid primary key,
  org_id text not null,
  by_field text not null,
  -- What is looked for; null once it is over.
  values_sought text[],
  reason text,
  messages int not null default 0,
  events int not null default 0,
  requested_at timestamptz not null,
  ended_at timestamptz,
  -- Not before then: a lease while somebody works on it.
  next_at timestamptz not null
);
create index erasure_of_org on erasure (org_id, id desc);
-- Promises: the next erasure and the next replay of each org are found without reading those of others.
create index erasure_next on erasure (next_at) where ended_at is null;
