-- Counts messages of a lane that wait behind another of their line, up to p_most. A function for its plan, as ready_in.
create or replace function behind_in(p_lane uuid, p_most int) returns bigint
language sql stable
as $$
  select count(*) from (select from line_entry e where e.lane = p_lane and e.state = 'WAITING' limit p_most) counted
$$;
