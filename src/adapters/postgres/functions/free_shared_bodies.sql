-- A body that several have goes when the last of them has let it go. Whoever lets go locks it first, so of two who are the
-- last one sees that the other was; in the order of ids, so that nobody waits in a circle.
create or replace function free_shared_bodies(p_events uuid[]) returns void
language plpgsql volatile as $$
begin
  if p_events is null then return; end if;
  perform 1 from shared_body s where s.event_id = any (p_events) order by s.event_id for update;
  delete from shared_body s where s.event_id = any (p_events) and not s.held
    and not exists (select 1 from message m where m.event_id = s.event_id);
end $$;
