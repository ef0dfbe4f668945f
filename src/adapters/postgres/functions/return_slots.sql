-- Slots of the lane's rate limit that no request will use. Only what was handed out under this limit comes back, once, and
-- only what is still to come.
create or replace function return_slots(p_lane uuid, p_slots timestamptz[]) returns void
language plpgsql volatile as $$
begin
  update lane l set returned_slots = nullif(array(
      select u.at from (select unnest(l.returned_slots) union select unnest(p_slots)) u(at)
      where u.at > clock_timestamp() and u.at < l.next_slot_at order by u.at), '{}')
    where l.lane = p_lane and l.rate_limit is not null;
end $$;
