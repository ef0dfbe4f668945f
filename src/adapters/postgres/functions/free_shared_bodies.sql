-- Deletes shared bodies that neither their event nor a message has. Locked first, in the order of ids: of two transactions that let go last, one sees
-- the other, and none waits in a circle.
create or replace function free_shared_bodies(p_events uuid[]) returns void
language plpgsql volatile as $$
begin
  if p_events is null then return; end if;
  perform 1 from shared_body s where s.event_id = any (p_events) order by s.event_id for update;
  delete from shared_body s where s.event_id = any (p_events) and not s.held
    and not exists (select 1 from message m where m.event_id = s.event_id);
end $$;
