-- Deletes those destinations whose lanes hold nothing, with journals (p_owners, p_streams), lanes and health. Answers how many.
create or replace function forget_destinations(p_ids uuid[], p_owners uuid[], p_streams uuid[]) returns int
language plpgsql volatile as $$
declare
  v_ids uuid[];
  v_streams uuid[];
begin
  -- Two statements: the second one sees messages put in before the lock.
  v_ids := array(select i from unnest(p_ids) i where pg_try_advisory_xact_lock(lane_bucket(i)));
  v_ids := array(
    select i from unnest(v_ids) i
    where not exists (select from ready r where r.lane = i)
      and not exists (select from line_entry t where t.lane = i)
      and not exists (select from claim c where i = any (c.lanes))
      and not exists (select from parked p join message m on p.stream = 'message-' || m.id where m.destination = i));
  v_streams := array(select u.stream from unnest(p_owners, p_streams) u(owner, stream) where u.owner = any (v_ids));
  delete from event where stream_id = any (v_streams);
  delete from detail where stream_id = any (v_streams);
  delete from health h using projection p where p.name = 'health' and h.generation = p.generation and h.destination = any (v_ids);
  delete from health_bucket h using projection p where p.name = 'health' and h.generation = p.generation and h.destination = any (v_ids);
  delete from alert_notice where destination = any (v_ids) or target_id = any (v_ids);
  delete from lane where lane = any (v_ids);
  delete from destination where id = any (v_ids);
  return cardinality(v_ids);
end $$;
