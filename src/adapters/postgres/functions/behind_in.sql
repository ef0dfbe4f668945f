-- How many messages of a lane wait behind another of their line, counted up to so many. A function as `ready_in` is.
create or replace function behind_in(p_lane uuid, p_most int) returns bigint
language sql stable
as $$
  select count(*) from (select from line_entry e where e.lane = p_lane and e.state = 'WAITING' limit p_most) counted
$$;
