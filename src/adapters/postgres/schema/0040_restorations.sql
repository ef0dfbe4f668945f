-- Promises: each time the database was found restored, moved or promoted has a row here: what was stored until `saved_at` is
-- known, what was done between then and `noticed_at` is not. `waiting` messages waited or were under way in what was saved.
create table restoration (
  nth bigint generated always as identity primary key,
  noticed_at timestamptz not null,
  saved_at timestamptz not null,
  why text not null,
  waiting bigint not null
);

-- Where PostgreSQL was started on a base backup, it leaves a file that says so. Its time, where we may look.
alter table log_base add column backup timestamptz;
do $$ begin
  update log_base set backup = (pg_stat_file('backup_label.old', true)).modification;
exception when insufficient_privilege then null;
end $$;
