-- Gives the head of each line to its lane, and answers the lanes to wake for those that moved up. The caller holds the lines' buckets.
create or replace function advance_lines(p_lanes uuid[], p_lines text[]) returns table (lane uuid, due timestamptz)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_heads uuid[];
  v_looked int;
  v_blocks bigint := pg_stat_get_xact_blocks_fetched('line_entry'::regclass) - pg_stat_get_xact_blocks_fetched('line_front'::regclass);
begin
  select array_agg(h.message_id) filter (where h.state = 'WAITING'), count(*) into v_heads, v_looked
    from (select distinct u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line)) l
    left join lateral (
      select t.message_id, t.state from line_entry t where t.lane = l.lane and t.line = l.line
        and t.nth >= coalesce((select f.first_nth from line_front f where f.lane = l.lane and f.line = l.line), 0)
      order by t.lane, t.line, t.nth limit 1
    ) h on true;
  if pg_stat_get_xact_blocks_fetched('line_entry'::regclass) - pg_stat_get_xact_blocks_fetched('line_front'::regclass) - v_blocks
    > {{lineBlocks}} * v_looked
  then perform begin_lines_later(p_lanes, p_lines); end if;
  if v_heads is null then return; end if;
  update line_entry t set state = 'GIVEN' where t.message_id = any (v_heads);
  insert into ready (lane, due_at, message_id, version, epoch, attempt)
    select t.lane, t.due_at, t.message_id, t.version, t.epoch, t.attempt from line_entry t where t.message_id = any (v_heads)
  on conflict do nothing;
  return query select t.lane, t.due_at from line_entry t where t.message_id = any (v_heads);
end $$;
