-- Promises: the messages of an org are looked through once for one that names a destination which was removed, however many there are.
create table looked_through (
  destination uuid primary key,
  -- Of the list. In one that is built anew the look begins anew.
  generation int not null,
  -- None of those up to this one names it.
  created_at timestamptz not null,
  message_id uuid not null,
  -- There was no end in sight, and nothing in the way.
  goes_on boolean not null
);
