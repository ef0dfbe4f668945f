-- Answers false, and changes nothing, when another projector was faster.
create or replace function project_health(
  p_generation int, p_from text, p_to text, p_facts int, p_states json, p_buckets json, p_kept_ms bigint
) returns boolean
language plpgsql volatile as $$
begin
  if not advance_projection('health', p_generation, p_from, p_to, p_facts) then return false; end if;
  insert into health as h (generation, destination, failing_since, last_failed_at, last_succeeded_at)
    select p_generation, n.destination, n.failing_since, n.last_failed_at, n.last_succeeded_at
    from json_to_recordset(p_states)
      n(destination uuid, failing_since timestamptz, last_failed_at timestamptz, last_succeeded_at timestamptz)
  -- Facts may come late, so times decide.
  on conflict (generation, destination) do update set
    failing_since = least(
      case when h.failing_since > coalesce(excluded.last_succeeded_at, '-infinity') then h.failing_since end,
      case when excluded.failing_since >= coalesce(h.last_succeeded_at, '-infinity') then excluded.failing_since end),
    last_failed_at = greatest(excluded.last_failed_at, h.last_failed_at),
    last_succeeded_at = greatest(excluded.last_succeeded_at, h.last_succeeded_at);
  insert into health_bucket as b (generation, destination, starts_at, succeeded, failed, latencies)
    select p_generation, n.destination, n.starts_at, n.succeeded, n.failed, array(select json_array_elements_text(n.latencies)::int)
    from json_to_recordset(p_buckets) n(destination uuid, starts_at timestamptz, succeeded int, failed int, latencies json)
  on conflict (generation, destination, starts_at) do update set
    succeeded = b.succeeded + excluded.succeeded, failed = b.failed + excluded.failed,
    latencies = array(select x + y from unnest(b.latencies, excluded.latencies) with ordinality u(x, y, i) order by i);
  -- Once for each destination, and by its key: a join read the buckets of all destinations.
  delete from health_bucket where ctid = any (array(
    select b.ctid
    from (select distinct n.destination from json_to_recordset(p_buckets) n(destination uuid)) n
    cross join lateral (
      select max(k.starts_at) - p_kept_ms * interval '1 millisecond' as until
      from health_bucket k where k.generation = p_generation and k.destination = n.destination
    ) kept
    cross join lateral (
      select o.ctid from health_bucket o
      where o.generation = p_generation and o.destination = n.destination and o.starts_at <= kept.until offset 0
    ) b));
  return true;
end $$;
