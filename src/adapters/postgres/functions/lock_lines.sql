-- Locks lines for whoever moves them up: the buckets of their lanes, which others may hold too, then those of the lines, each kind
-- in order. What everybody locks, and in which order, stands in move_in_queue.sql.
create or replace function lock_lines(p_lanes uuid[], p_lines text[]) returns void language plpgsql volatile as $$
declare
  v_bucket bigint;
begin
  for v_bucket in select lane_buckets(p_lanes) loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  for v_bucket in select distinct line_bucket(u.lane, u.line) from unnest(p_lanes, p_lines) u(lane, line) order by 1 loop
    perform pg_advisory_xact_lock(v_bucket);
  end loop;
end $$;
