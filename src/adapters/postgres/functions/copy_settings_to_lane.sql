-- Copies a destination's settings to its lane in the same commit. Nothing holds back messages of a removed destination, so that they come to their
-- end.
create or replace function copy_settings_to_lane() returns trigger
language plpgsql as $$
declare
  v_removed boolean := new.removed_at is not null;
  v_limit int := case when v_removed then null else (new.settings #>> '{rateLimit,limit}')::int end;
  v_period int := case when v_removed then null else (new.settings #>> '{rateLimit,periodMs}')::int end;
  v_paused boolean := (new.paused or new.disabled_reason is not null);
  -- The spare time covers what comes before and after the request.
  v_permit int := coalesce((new.settings ->> 'timeoutMs')::int, {{timeoutUnknownMs}}) + {{permitSpareMs}};
  v_blocks boolean := coalesce(new.settings ->> 'onDeadLetter', '') = 'block' and not v_removed;
  v_freed boolean := not v_blocks and exists (select 1 from lane l where l.lane = new.id and l.blocks);
  v_bucket bigint;
  v_lines text[];
  v_due timestamptz;
begin
  perform pg_advisory_xact_lock_shared(org_lock(new.org_id));
  v_paused := not v_removed
    and (v_paused or exists (select 1 from org o where o.id = new.org_id and o.suspended is not null));
  -- All of them, before the lane's row: no append that read the lane as it was may block a line.
  if v_freed then
    for v_bucket in select lock_key(128 + n) from generate_series(0, 127) n order by 1 loop
      perform pg_advisory_xact_lock(v_bucket);
    end loop;
  end if;
  insert into lane as l (lane, org_id, ready_at, paused, rate_limit, rate_period_ms, permit_ms, blocks)
    values (new.id, new.org_id, 'infinity', v_paused, v_limit, v_period, v_permit, v_blocks)
  on conflict (lane) do update set
    org_id = excluded.org_id, paused = excluded.paused, rate_limit = excluded.rate_limit, rate_period_ms = excluded.rate_period_ms,
    permit_ms = excluded.permit_ms, blocks = excluded.blocks,
    -- A changed limit starts anew.
    next_slot_at = case when not v_removed
      and (l.rate_limit, l.rate_period_ms) is not distinct from (excluded.rate_limit, excluded.rate_period_ms)
      then l.next_slot_at end
  where (l.org_id, l.paused, l.rate_limit, l.rate_period_ms, l.permit_ms, l.blocks)
    is distinct from (excluded.org_id, excluded.paused, excluded.rate_limit, excluded.rate_period_ms, excluded.permit_ms, excluded.blocks)
    or (v_removed and l.next_slot_at is not null);
  if v_freed then
    perform pg_advisory_xact_lock_shared(lane_bucket(new.id));
    with aside as (delete from line_entry t where t.lane = new.id and t.state = 'DEAD' returning t.line)
    select array_agg(a.line) into v_lines from aside a;
    if v_lines is not null then
      select min(a.due) into v_due from advance_lines(array_fill(new.id, array[cardinality(v_lines)]), v_lines) a;
      if v_due is not null then perform wake_lanes(array[new.id], array[v_due]); end if;
    end if;
  end if;
  if v_removed then
    perform change_circuit(l.lane, l.generation, l.circuit_stream, array[{{removedName}}],
        array[{{removedData}}], 'CLOSED', 0, null, null)
      from lane l where l.lane = new.id and l.circuit <> 'CLOSED';
  end if;
  return null;
end $$;
create or replace trigger copy_settings_to_lane after insert or update of settings, paused, disabled_reason, removed_at on destination
  for each row execute function copy_settings_to_lane();
