-- The processes, as each said last: for people, alerts and metrics. A row is kept for an hour after that, so that a process that
-- vanished is missed.
create table process (
  id text primary key,
  host text not null,
  pid int not null,
  roles text[] not null,
  version text not null,
  since timestamptz not null,
  last_seen timestamptz not null,
  -- Minus this server's clock; null until measured.
  clock_offset_ms int,
  -- Whether it is to use Posthaste's own broker.
  broker boolean not null default false,
  -- Null while the process does not try to reach it.
  broker_away boolean,
  broker_since timestamptz not null
) with (fillfactor = 50);

-- Promises: one process leads at a time, by its heartbeats and this server's clock. `figures`: of the installation, as the leader read
-- them last.
create table leader (
  one boolean primary key default true check (one),
  holder text not null,
  until timestamptz not null,
  figures_at timestamptz,
  figures json
) with (fillfactor = 50);

-- A row for each time the database was found restored, moved or promoted: facts between `saved_at` and `noticed_at` are unknown.
-- `waiting`: messages that waited or were under way in what was saved.
create table restoration (
  nth bigint generated always as identity primary key,
  noticed_at timestamptz not null,
  saved_at timestamptz not null,
  why text not null,
  waiting bigint not null
);
