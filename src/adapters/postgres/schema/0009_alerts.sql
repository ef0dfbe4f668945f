-- A target was told of a dead letter of a destination, which died at that time.
create table alert_notice (
  target_id uuid not null,
  destination uuid not null,
  at timestamptz not null,
  primary key (destination, target_id)
);
create index alert_notice_age on alert_notice (at);
