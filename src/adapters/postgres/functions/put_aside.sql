-- Sets messages aside: out of the batch that holds them, or, without a batch, as they are. Only what is in the batch is taken, so a
-- repeated call does nothing, and one that comes after a takeover has no effect. A message that waits for its turn in its line is
-- where it belongs: what became of it in that batch is over. Where its facts can't be read, its lane says whose it is. A release from
-- before p_versions calls without them.
create or replace function put_aside(
  p_batch uuid, p_messages uuid[], p_orgs text[], p_lanes uuid[], p_reasons text[], p_details text[], p_pauses_ms bigint[],
  p_versions int[] default null
) returns void
language plpgsql volatile as $$
declare
  v_claim claim;
  v_now timestamptz := clock_timestamp();
begin
  if p_batch is not null then
    select * into v_claim from claim c where c.batch = p_batch for no key update;
    if not found then return; end if;
    update claim c set (messages, lanes, dues, versions, epochs, attempts) = (
        select coalesce(array_agg(u.message order by u.i), '{}'), coalesce(array_agg(u.lane order by u.i), '{}'),
          coalesce(array_agg(u.due order by u.i), '{}'), coalesce(array_agg(u.version order by u.i), '{}'),
          coalesce(array_agg(u.epoch order by u.i), '{}'), coalesce(array_agg(u.attempt order by u.i), '{}')
        from unnest(v_claim.messages, v_claim.lanes, v_claim.dues, v_claim.versions, v_claim.epochs, v_claim.attempts)
          with ordinality u(message, lane, due, version, epoch, attempt, i)
        where u.message <> all (p_messages))
      where c.batch = p_batch;
  end if;
  insert into set_aside as s (message_id, org_id, lane, reason, detail, version, since, again_at)
    select u.message, coalesce(u.org, (select l.org_id from lane l where l.lane = u.lane)), u.lane, u.reason, u.detail, u.version,
      v_now, v_now + p_pauses_ms[1] * interval '1 millisecond'
    from unnest(p_messages, p_orgs, p_lanes, p_reasons, p_details, p_versions) u(message, org, lane, reason, detail, version)
    where (p_batch is null or u.message = any (v_claim.messages))
      and not exists (select 1 from line_entry t where t.message_id = u.message and t.state = 'WAITING')
    order by u.message
  on conflict (message_id) do update set org_id = coalesce(excluded.org_id, s.org_id), lane = coalesce(excluded.lane, s.lane),
    reason = excluded.reason, detail = excluded.detail, tries = s.tries + 1, tried_at = null,
    -- Who looked earlier may come later.
    version = greatest(excluded.version, s.version),
    again_at = v_now + p_pauses_ms[least(s.tries + 1, cardinality(p_pauses_ms))] * interval '1 millisecond';
end $$;
