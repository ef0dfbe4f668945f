-- Dead letters, and messages sent and never proven, whose streams are elsewhere and whose life is over: those of p_org that were accepted
-- after one message up to another, where forget_ended has just looked. Each with the version that its view was made of: only whoever keeps
-- the stream can say whether it has moved since.
create or replace function dead_elsewhere(
  p_now timestamptz, p_days_max float8, p_dead timestamptz,
  p_org text, p_created timestamptz, p_id uuid, p_next_org text, p_next_created timestamptz, p_next_id uuid
) returns table (id uuid, version int)
language plpgsql stable
as $$
declare
  v_generation int := (select generation from projection where name = 'messages' and live);
begin
  p_org := coalesce(p_org, (select min(c.org_id) from message_count c where c.generation = v_generation));
  p_dead := forgotten_before(p_org, 'deadLetterDays', p_now, p_days_max, p_dead);
  return query
    select v.id, v.version from unnest(array['FAILED', 'DEAD_LETTER', 'SENT']) a(status) cross join lateral (
      select m.id, m.version, m.ended_at from message_view m
      where m.generation = v_generation and m.org_id = p_org and m.status = a.status and m.created_at < p_dead
        and (m.created_at, m.id) > (coalesce(p_created, '-infinity'), coalesce(p_id, '00000000-0000-0000-0000-000000000000'))
        and (p_next_org is distinct from p_org or (m.created_at, m.id) <= (p_next_created, p_next_id))
      order by m.created_at, m.id
    ) v
    where (a.status = 'SENT' or v.ended_at < p_dead)
      and exists (select from copied_fact c where c.stream_id = v.id)
      and not exists (select from line_entry l where l.message_id = v.id);
end $$;
