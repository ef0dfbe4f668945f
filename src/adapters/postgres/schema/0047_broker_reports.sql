-- Promises: whether each process that needs the broker reaches it, for each thing that it does with it, and since when. A row
-- that is not renewed means nothing. Nothing but alerts and people decides by it.
create table broker_report (
  task text not null,
  process text not null,
  away boolean not null,
  since timestamptz not null default clock_timestamp(),
  reported_at timestamptz not null default clock_timestamp(),
  primary key (task, process)
) with (fillfactor = 50);
alter table fact_outlet drop column away, drop column since;
