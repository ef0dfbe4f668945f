-- Promises: who runs, as each process itself said last. Nothing decides by it: it is for people, alerts and metrics. A row
-- that nobody renews is kept for an hour, so that a process that vanished can be missed.
create table process (
  id text primary key,
  host text not null,
  pid int not null,
  roles text[] not null,
  version text not null,
  since timestamptz not null,
  last_seen timestamptz not null,
  -- The process's own clock minus this server's; null until it was measured.
  clock_offset_ms int
) with (fillfactor = 50);
