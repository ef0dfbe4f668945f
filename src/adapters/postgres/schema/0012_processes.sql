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
  clock_offset_ms int,
  -- Promises: a process says whether it is to use Posthaste's own broker, so that a broker nobody serves can be missed.
  broker boolean not null default false,
  -- Whether that broker is away, and since when it has been so; null while the process does not try to reach it.
  broker_away boolean,
  broker_since timestamptz not null
) with (fillfactor = 50);

-- Promises: one process leads at a time, by its heartbeats and this server's clock. The row also holds the figures of the whole
-- installation that the leader read last; lost, they are read again.
create table leader (
  one boolean primary key default true check (one),
  holder text not null,
  until timestamptz not null,
  figures_at timestamptz,
  figures json
) with (fillfactor = 50);

-- Promises: each time the database was found restored, moved or promoted has a row here: what was stored until `saved_at` is
-- known, what was done between then and `noticed_at` is not. `waiting` messages waited or were under way in what was saved.
create table restoration (
  nth bigint generated always as identity primary key,
  noticed_at timestamptz not null,
  saved_at timestamptz not null,
  why text not null,
  waiting bigint not null
);
