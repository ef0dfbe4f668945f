-- Gives the head of each line to its lane, and answers the lanes to wake. The caller holds the lines' buckets.
create or replace function advance_lines(p_lanes uuid[], p_lines text[]) returns table (lane uuid, due timestamptz)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_heads uuid[];
begin
  select array_agg(h.message_id) filter (where h.state = 'WAITING') into v_heads
    from (select distinct u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line)) l
    left join lateral (
      select t.message_id, t.state from line_entry t where t.lane = l.lane and t.line = l.line
      order by t.lane, t.line, t.nth limit 1
    ) h on true;
  if v_heads is null then return; end if;
  update line_entry t set state = 'GIVEN' where t.message_id = any (v_heads);
  insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select t.lane, t.due_at, t.message_id, t.version, t.epoch, t.attempt from line_entry t where t.message_id = any (v_heads)
  on conflict do nothing;
  return query select t.lane, t.due_at from line_entry t where t.message_id = any (v_heads);
end $$;
