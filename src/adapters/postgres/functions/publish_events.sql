-- Stores events with facts, bodies and messages: all, or none. Answers those whose key was used before, with the event that used it; or a row without
-- an event ('work') when there may be more to claim. A key taken in the same moment fails the call (unique_violation). Parameters after the first are
-- those of `append`.
create or replace function publish_events(
  p_events json,
  p_streams uuid[], p_expected int[], p_at_ms bigint[], p_actors text, p_fences uuid[],
  p_fact_entry int[], p_fact_nth int[], p_fact_names text, p_fact_data text,
  p_move_entry int[], p_moves text[], p_move_lanes uuid[], p_move_lines text[], p_move_dues_ms bigint[],
  p_move_versions int[], p_move_epochs int[], p_move_attempts int[],
  p_open_entry int[], p_open_data text, p_open_bodies text[], p_open_events uuid[], p_open_lanes uuid[], p_open_orgs text[], p_open_keys text[], p_open_hashes text[],
  p_detail_entry int[], p_detail_nth int[], p_detail_data text, p_detail_actors text, p_detail_epochs int[], p_detail_attempts int[], p_detail_bodies text[], p_detail_headers text[],
  p_gates int[], p_gate_lanes uuid[], p_gate_generations int[]
) returns table (event uuid, other uuid, hash text)
language plpgsql volatile
as $$
declare
  v_answer record;
  v_work boolean := false;
begin
  return query select s.event, s.other, s.hash from store_publications(p_events) s;
  if found or cardinality(p_streams) = 0 then return; end if;
  for v_answer in
    select a.stream, a.verdict from append(
      p_streams, p_expected, p_at_ms, p_actors, p_fences, p_fact_entry, p_fact_nth, p_fact_names, p_fact_data,
      p_move_entry, p_moves, p_move_lanes, p_move_lines, p_move_dues_ms, p_move_versions, p_move_epochs, p_move_attempts,
      p_open_entry, p_open_data, p_open_bodies, p_open_events, p_open_lanes, p_open_orgs, p_open_keys, p_open_hashes,
      p_detail_entry, p_detail_nth, p_detail_data, p_detail_actors, p_detail_epochs, p_detail_attempts, p_detail_bodies, p_detail_headers, p_gates, p_gate_lanes, p_gate_generations) a
  loop
    -- Their ids are new.
    if v_answer.stream is not null then
      raise exception 'message % of an event was answered %', v_answer.stream, v_answer.verdict;
    end if;
    v_work := true;
  end loop;
  if v_work then return query select null::uuid, null::uuid, null::text; end if;
end $$;
