-- Claims one waiting message before its time, in a batch of its own. A second claim at the same moment finds no row.
create or replace function claim_one(p_worker text, p_lane uuid, p_due timestamptz, p_message uuid, p_lease_ms int) returns uuid
language sql volatile as $$
  with taken as (
    delete from ready r where r.lane = p_lane and r.due_at = p_due and r.message_id = p_message
    returning r.message_id, r.lane, r.due_at, r.version, r.epoch, r.attempt
  )
  insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
    select gen_random_uuid(), p_worker, clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0), array[message_id],
      array[lane], array[due_at], array[version], array[epoch], array[attempt]
    from taken
  returning batch
$$;
