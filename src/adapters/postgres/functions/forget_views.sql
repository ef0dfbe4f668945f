-- Each projection forgets for itself, in all its generations.
create or replace function forget_views() returns trigger
language plpgsql as $$
begin
  with lost as (
    delete from message_view v using gone g where v.id = g.message_id
    returning v.generation, v.org_id, v.channel, v.status
  ), summed as (
    select l.generation, l.org_id, l.channel, l.status, count(*) as n from lost l group by 1, 2, 3, 4
  )
  update message_count c set count = c.count - s.n from summed s
    where c.generation = s.generation and c.org_id = s.org_id and c.channel = s.channel and c.status = s.status;
  return null;
end $$;
create or replace trigger forget_views after insert on forgotten_message referencing new table as gone
  for each statement execute function forget_views();
