-- Moves batches whose lease ran out to another worker under new names, which voids the old fences.
create or replace function take_over(p_worker text, p_lease_ms int, p_max int) returns table (
  batch uuid, messages uuid[], lanes uuid[], dues_ms bigint[], versions int[], epochs int[], attempts int[]
)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_expired uuid[] := array(
    select c.batch from claim c where c.lease_until < v_now order by c.lease_until limit p_max for update skip locked);
  v_names uuid[] := array(select gen_random_uuid() from unnest(v_expired));
begin
  return query
    update claim c set batch = x.name, worker = p_worker, lease_until = v_now + make_interval(secs => p_lease_ms / 1000.0)
    from unnest(v_expired, v_names) x(expired, name) where c.batch = x.expired
    returning c.batch, c.messages, c.lanes,
      (select array_agg((extract(epoch from d) * 1000)::bigint order by i) from unnest(c.dues) with ordinality u(d, i)),
      c.versions, c.epochs, c.attempts;
end $$;
