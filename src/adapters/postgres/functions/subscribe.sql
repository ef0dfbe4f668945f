-- Destinations with the setting `eventTypes` get events, except those that exist for alerts.
create or replace function subscribe() returns trigger
language plpgsql as $$
declare
  v_wanted text[] := case
    when new.removed_at is not null or new.alerting is not null then '{}'
    when jsonb_typeof(new.settings -> 'eventTypes') = 'array' then array(select jsonb_array_elements_text(new.settings -> 'eventTypes'))
    when jsonb_typeof(new.settings -> 'eventTypes') = 'null' then array['*']
    else '{}' end;
begin
  delete from subscription s where s.destination = new.id and s.pattern <> all (v_wanted);
  insert into subscription (org_id, pattern, destination) select distinct new.org_id, w, new.id from unnest(v_wanted) w
  on conflict do nothing;
  return null;
end $$;
create or replace trigger subscribe after insert or update of settings, removed_at on destination
  for each row execute function subscribe();
