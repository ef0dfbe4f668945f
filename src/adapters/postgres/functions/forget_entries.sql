create or replace function forget_entries() returns trigger
language plpgsql as $$
begin
  delete from audit a using (select p.generation, g.message_id from projection p cross join gone g where p.name = 'audit') g
    where a.generation = g.generation and a.stream_id = g.message_id;
  delete from activity a using (select p.generation, g.message_id from projection p cross join gone g where p.name = 'activity') g
    where a.generation = g.generation and a.stream_id = g.message_id;
  return null;
end $$;
create or replace trigger forget_entries after insert on forgotten_message referencing new table as gone
  for each statement execute function forget_entries();
