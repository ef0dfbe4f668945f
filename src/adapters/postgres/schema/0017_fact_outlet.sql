-- Promises: how far the facts have gone out to the broker. Moved only after the broker has confirmed them, and by one process
-- at a time, so each fact goes out at least once and those of a message in their order.
create table fact_outlet (
  one boolean primary key default true check (one),
  position text,
  holder uuid,
  lease_until timestamptz not null default '-infinity',
  -- Whether the broker is away, and since when it is as it is; null before anybody has tried.
  away boolean,
  since timestamptz
) with (fillfactor = 50);
insert into fact_outlet default values;
