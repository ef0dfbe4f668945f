-- Lets claims of lanes that stay awake begin at their first message, where nobody is about to put one in: the next one whose look was
-- long tries again. A little before now at most: who accepts writes later than the moment it accepted, and would have to move the
-- beginning back. Part of claim_due, which has locked the lanes, and planned under its settings.
create or replace function begin_later(p_lanes uuid[]) returns void language plpgsql volatile as $$
declare
  -- Two statements, so that the second one sees what was put in before the lock was taken.
  v_free uuid[] := array(select u.lane from unnest(p_lanes) u(lane) where pg_try_advisory_xact_lock(lane_bucket(u.lane)));
  v_until timestamptz := clock_timestamp() - {{writtenWithinMs}} * interval '1 millisecond';
begin
  update lane l set first_due_at = f.due
    from unnest(v_free) u(lane) cross join lateral (
      select k.ctid as place, least(v_until, (
        select r.due_at from ready r where r.lane = k.lane and r.due_at >= k.first_due_at
        order by r.lane, r.due_at, r.message_id limit 1)) as due
      from lane k where k.lane = u.lane limit 1) f
    where l.ctid = f.place and l.first_due_at < f.due;
end $$;
