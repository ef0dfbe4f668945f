create sequence sql_command_n cache 100;
create table sql_command (
  -- The caller's transaction.
  tx xid8 not null default pg_current_xact_id(),
  n bigint not null default nextval('sql_command_n'::regclass),
  -- Of the message or event that it becomes.
  id uuid not null,
  org_id text not null,
  type text not null,
  key text,
  -- As the caller wrote it, of at most 256 KiB (keep_command.sql).
  request text not null,
  -- W3C; a malformed one means nothing.
  traceparent text,
  primary key (tx, n)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create index sql_command_id on sql_command (id);

-- A command whose key was used before became what the earlier one became.
create table sql_command_alias (
  id uuid primary key,
  became uuid not null,
  at timestamptz not null default clock_timestamp()
);
create index sql_command_alias_at on sql_command_alias (at);

-- One process at a time moves commands, so that those of one caller keep their order.
create table sql_command_mover (
  one boolean primary key default true check (one),
  holder uuid,
  lease_until timestamptz not null default '-infinity'::timestamptz
) with (fillfactor = 50);

create table refused_command (
  id uuid primary key,
  org_id text not null,
  type text not null,
  key text,
  request jsonb not null,
  problem json not null,
  at timestamptz not null default clock_timestamp(),
  -- To the broker's queue of rejected commands.
  published boolean not null default false
);
create index refused_command_at on refused_command (at);
create index refused_command_unpublished on refused_command (at) where (NOT published);
insert into sql_command_mover default values;
