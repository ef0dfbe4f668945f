-- Lets the looks for the heads of these lines begin at them, where a look walked past many that are gone. Where lines begin is
-- written seldom: what a row was before is in the way as well, so the more there is of that, the longer a look may be. Part of
-- advance_lines, whose caller holds the lines' buckets: nobody comes in before a head.
create or replace function begin_lines_later(p_lanes uuid[], p_lines text[]) returns void language plpgsql volatile as $$
declare
  v_lane uuid;
  v_line text;
  v_head bigint;
  v_blocks bigint;
begin
  for v_lane, v_line in select distinct u.lane, u.line from unnest(p_lanes, p_lines) u(lane, line) order by 1, 2 loop
    v_blocks := pg_stat_get_xact_blocks_fetched('line_entry'::regclass) - pg_stat_get_xact_blocks_fetched('line_front'::regclass);
    v_head := (
      select t.nth from line_entry t where t.lane = v_lane and t.line = v_line
        and t.nth >= coalesce((select f.first_nth from line_front f where f.lane = v_lane and f.line = v_line), 0)
      order by t.lane, t.line, t.nth limit 1);
    continue when v_head is null
      or pg_stat_get_xact_blocks_fetched('line_entry'::regclass) - pg_stat_get_xact_blocks_fetched('line_front'::regclass) - v_blocks
        <= {{lineBlocks}};
    insert into line_front (lane, line, first_nth, at) values (v_lane, v_line, v_head, clock_timestamp())
    on conflict (lane, line) do update set first_nth = excluded.first_nth, at = excluded.at;
  end loop;
end $$;
