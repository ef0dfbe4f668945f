-- Counts messages of a lane in `ready`, up to p_most. A function for its plan: where nearly all messages were of one lane, the planner read all of
-- `ready` for each lane of a list.
create or replace function ready_in(p_lane uuid, p_most int) returns bigint
language sql stable
as $$
  select count(*) from (select from ready r where r.lane = p_lane limit p_most) counted
$$;
