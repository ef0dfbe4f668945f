-- Moves batches whose lease ran out to another worker under new names: what was fenced by the old name is void.
create or replace function take_over(p_worker text, p_lease_ms int, p_max int) returns table (
  batch bigint, messages uuid[], lanes uuid[], dues_ms bigint[], versions int[], epochs int[], attempts int[]
)
language sql volatile as $$
  with expired as (
    select batch from claim where lease_until < clock_timestamp() order by lease_until limit p_max for update skip locked
  )
  update claim c set
    batch = nextval('batch'), worker = p_worker,
    lease_until = clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0)
  from expired x where c.batch = x.batch
  returning c.batch, c.messages, c.lanes,
    (select array_agg((extract(epoch from d) * 1000)::bigint order by i) from unnest(c.dues) with ordinality u(d, i)),
    c.versions, c.epochs, c.attempts
$$;
