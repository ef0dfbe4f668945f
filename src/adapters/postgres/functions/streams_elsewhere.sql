-- Whether streams are in EventStoreDB. Whoever follows the log there has left its name, also where no message is left.
create or replace function streams_elsewhere() returns boolean
language sql stable
as $$
  select exists (select from copied_fact) or exists (select from log_follower where holder is not null)
$$;
