create or replace function let_go_of_shared_bodies() returns trigger
language plpgsql as $$
begin
  perform free_shared_bodies((select array_agg(distinct g.event_id) from gone g where g.event_id is not null));
  return null;
end $$;
create or replace trigger let_go_of_shared_bodies after delete on message referencing old table as gone
  for each statement execute function let_go_of_shared_bodies();
create or replace trigger exchange_shared_bodies after update on message referencing old table as gone
  for each statement execute function let_go_of_shared_bodies();
