-- Promises: how far alerting has read the log and what it told of lately change together.

-- One row.
create table alert_progress (
  one boolean primary key default true check (one),
  position text
);

-- That a target was told of a dead letter of a destination, and when that one died.
create table alert_notice (
  target_id uuid not null,
  destination uuid not null,
  at timestamptz not null,
  primary key (destination, target_id)
);
create index alert_notice_age on alert_notice (at);
insert into alert_progress (position) values (null);
