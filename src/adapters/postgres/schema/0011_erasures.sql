-- Promises: an erasure goes on whatever crashes, until nothing is found of the person, whose name it forgets at its end.
create table erasure (
  id uuid primary key,
  org_id text not null,
  by_field text not null,
  -- Null once it is over.
  values_sought text[],
  reason text,
  messages int not null default 0,
  events int not null default 0,
  requested_at timestamptz not null,
  ended_at timestamptz,
  -- The end of a lease.
  next_at timestamptz not null
);
create index erasure_of_org on erasure (org_id, id desc);
create index erasure_next on erasure (next_at) where ended_at is null;
