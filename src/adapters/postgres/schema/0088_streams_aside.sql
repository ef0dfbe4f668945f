-- Promises: a reader of the log that passes over facts because it can't process their stream owes them here, until it makes up for
-- them. A projection writes both in the transaction of its step.
create table stream_aside (
  -- The name of a projection, with its generation, or of another reader, with generation 0.
  reader text not null,
  generation int not null,
  stream text not null,
  -- Of the facts that it owes, ascending.
  versions int[] not null,
  reason text not null,
  detail text not null,
  since timestamptz not null default clock_timestamp(),
  tries int not null default 1,
  again_at timestamptz not null,
  primary key (reader, generation, stream)
) with (fillfactor = 70);
