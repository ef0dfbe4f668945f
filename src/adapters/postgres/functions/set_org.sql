-- Sets an org's settings, and through the trigger of its destinations their lanes. Changes of destinations hold the same lock shared, so that no lane
-- misses the change; the loser of a deadlock is asked again.
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
