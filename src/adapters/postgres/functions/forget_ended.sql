-- Looks at the next messages of one org in the order they were accepted and forgets those that ended well before
-- p_before, and those that ended otherwise, or were sent and never proven, before p_dead; the org's own days take the place of both. Answers nothing while another sweep is under way; `next_org` null says that all was looked at.
create or replace function forget_ended(
  p_now timestamptz, p_days_max float8, p_before timestamptz, p_dead timestamptz,
  p_org text, p_created timestamptz, p_id uuid, p_limit int
) returns table (removed int, next_org text, next_created timestamptz, next_id uuid)
language plpgsql volatile
as $$
declare
  v_generation int;
  v_ids uuid[];
  v_dead uuid[];
  v_seen int;
  v_now timestamptz := clock_timestamp();
begin
  if not pg_try_advisory_xact_lock(lock_key(1)) then return; end if;
  -- Every projector takes its row first too: so none waits for the other's rows in a circle, and a step that comes after
  -- this sees what was forgotten.
  perform 1 from projection order by name, generation for update;
  if p_org is null then
    delete from receipt_inbox where id in (select id from receipt_inbox where parked_at < p_dead limit p_limit);
  end if;
  v_generation := (select generation from projection where name = 'messages' and live);
  p_org := coalesce(p_org, (select min(org_id) from message_count where generation = v_generation));
  if p_org is null then
    return query select 0, null::text, null::timestamptz, null::uuid;
    return;
  end if;
  p_before := forgotten_before(p_org, 'endedDays', p_now, p_days_max, p_before);
  p_dead := forgotten_before(p_org, 'deadLetterDays', p_now, p_days_max, p_dead);
  select count(*), coalesce(array_agg(v.id) filter (
      where v.status in ({{endedWell}}) and v.ended_at < p_before), '{}'),
    coalesce(array_agg(v.id) filter (
      where v.status in ('FAILED', 'DEAD_LETTER') and v.ended_at < p_dead or v.status = 'SENT' and v.created_at < p_dead), '{}'),
    max(v.created_at), (array_agg(v.id order by v.created_at desc, v.id desc))[1]
    into v_seen, v_ids, v_dead, p_created, p_id
    from (
      select l.* from unnest(array[{{endedWell}}, 'FAILED', 'DEAD_LETTER', 'SENT']) s(status) cross join lateral (
        select m.id, m.status, m.created_at, m.ended_at from message_view m
        where m.generation = v_generation and m.org_id = p_org and m.status = s.status
          and m.created_at < greatest(p_before, p_dead)
          and (m.created_at, m.id) > (coalesce(p_created, '-infinity'), coalesce(p_id, '00000000-0000-0000-0000-000000000000'))
        order by m.created_at, m.id limit p_limit
      ) l order by l.created_at, l.id limit p_limit
    ) v;
  if cardinality(v_dead) > 0 then
    -- What can still move may have moved since the projection read it, or be moving now: nobody appends until this is over.
    lock table event in share row exclusive mode;
    v_ids := v_ids || array(
      select v.id from message_view v
      where v.generation = v_generation and v.id = any (v_dead)
        and v.version = (select max(e.version) from event e where e.stream_id = v.id)
        and not exists (select 1 from line_entry l where l.message_id = v.id));
  end if;
  -- Longer than any projector holds on to what it has read.
  delete from forgotten_message where at < v_now - interval '1 day';
  perform forget_messages(v_ids);
  if v_seen < p_limit then
    p_org := (select min(c.org_id) from message_count c where c.generation = v_generation and c.org_id > p_org);
    p_created := null;
    p_id := null;
  end if;
  return query select cardinality(v_ids), p_org, p_created, p_id;
end $$;
