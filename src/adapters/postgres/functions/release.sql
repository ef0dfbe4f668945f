-- Ends a batch: messages that were not started wait again as before. Does nothing if the batch is no longer held.
create or replace function release(
  p_batch uuid, p_lanes uuid[], p_dues timestamptz[], p_messages uuid[], p_versions int[], p_epochs int[], p_attempts int[]
) returns boolean
language plpgsql volatile as $$
declare
  v_bucket bigint;
  v_held uuid[];
begin
  if cardinality(p_messages) = 0 then
    delete from claim where batch = p_batch;
    return found;
  end if;
  delete from claim where batch = p_batch returning messages into v_held;
  if found then
    for v_bucket in select lane_buckets(p_lanes) loop
      perform pg_advisory_xact_lock_shared(v_bucket);
    end loop;
    insert into ready (lane, due_at, message_id, version, epoch, attempt)
      select * from unnest(p_lanes, p_dues, p_messages, p_versions, p_epochs, p_attempts)
        u(lane, due, message, version, epoch, attempt)
      where u.message = any (v_held)
    on conflict do nothing;
    perform wake_lanes(p_lanes, p_dues);
  end if;
  return v_held is not null;
end $$;
