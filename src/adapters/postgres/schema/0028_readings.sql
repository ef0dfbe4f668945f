-- What one process read of the whole installation, for the metrics of all of them. One row; lost, it is read again.
create table readings (
  one boolean primary key default true check (one),
  holder text not null,
  until timestamptz not null,
  read_at timestamptz,
  readings json
);
