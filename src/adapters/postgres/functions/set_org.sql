-- Sets what holds for an org, and with it the lanes of its destinations: their trigger asks whether it is suspended. A destination
-- that is changed or made meanwhile holds the same lock shared, so that no lane misses the change. Two that wait for each other are a
-- deadlock, and the loser is asked again.
create or replace function set_org(p_org text, p_name text, p_suspended text, p_limits jsonb, p_retry jsonb, p_retention jsonb,
  p_at timestamptz)
  returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(org_lock(p_org));
  insert into org (id, name, suspended, limits, retry, retention, updated_at)
    values (p_org, p_name, p_suspended, p_limits, p_retry, p_retention, p_at)
    on conflict (id) do update set name = excluded.name, suspended = excluded.suspended, limits = excluded.limits,
      retry = excluded.retry, retention = excluded.retention, updated_at = excluded.updated_at;
  update destination set paused = paused where org_id = p_org and removed_at is null;
end $$;
