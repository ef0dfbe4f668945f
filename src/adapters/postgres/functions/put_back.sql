-- Takes messages out of a batch that is held on: they wait again as before. Repeated, it does nothing.
create or replace function put_back(p_batch uuid, p_messages uuid[]) returns void
language plpgsql volatile as $$
declare
  v_claim claim;
  v_lanes uuid[];
  v_dues timestamptz[];
  v_bucket bigint;
begin
  select * into v_claim from claim c where c.batch = p_batch for no key update;
  if not found then return; end if;
  select array_agg(u.lane), array_agg(u.due) into v_lanes, v_dues
    from unnest(v_claim.messages, v_claim.lanes, v_claim.dues) u(message, lane, due) where u.message = any (p_messages);
  if v_lanes is null then return; end if;
  for v_bucket in select lane_buckets(v_lanes) loop
    perform pg_advisory_xact_lock_shared(v_bucket);
  end loop;
  insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select u.lane, u.due, u.message, u.version, u.epoch, u.attempt
    from unnest(v_claim.messages, v_claim.lanes, v_claim.dues, v_claim.versions, v_claim.epochs, v_claim.attempts)
      u(message, lane, due, version, epoch, attempt)
    where u.message = any (p_messages)
  on conflict do nothing;
  update claim c set (messages, lanes, dues, versions, epochs, attempts) = (
      select coalesce(array_agg(u.message), '{}'), coalesce(array_agg(u.lane), '{}'), coalesce(array_agg(u.due), '{}'),
        coalesce(array_agg(u.version), '{}'), coalesce(array_agg(u.epoch), '{}'), coalesce(array_agg(u.attempt), '{}')
      from unnest(v_claim.messages, v_claim.lanes, v_claim.dues, v_claim.versions, v_claim.epochs, v_claim.attempts)
        u(message, lane, due, version, epoch, attempt)
      where u.message <> all (p_messages))
    where c.batch = p_batch;
  perform wake_lanes(v_lanes, v_dues);
end $$;
