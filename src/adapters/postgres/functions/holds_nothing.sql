-- Whether no message is in this lane, in a batch of it, or set aside, wherever it will belong.
create or replace function holds_nothing(p_lane uuid) returns boolean
language sql stable
as $$
  select not exists (select from ready r where r.lane = p_lane)
    and not exists (select from line_entry t where t.lane = p_lane)
    and not exists (select from claim c where p_lane = any (c.lanes))
    and not exists (select from set_aside s where s.lane = p_lane or s.lane is null)
    and not exists (select from owed_message o where o.data ->> 'destination' = p_lane::text)
$$;
