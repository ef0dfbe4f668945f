-- Takes back what was reserved for appends that will never be. A first body stays where its message is.
create or replace function withdraw_intents(p_ids uuid[]) returns void
language plpgsql volatile as $$
declare
  v_messages uuid[];
  v_lanes uuid[];
  v_lines text[];
  v_dues timestamptz[];
begin
  select array_agg(l.lane), array_agg(l.line) into v_lanes, v_lines from (
    select distinct t.lane, t.line from append_intent i join line_entry t on t.message_id = i.message_id
    where i.event_id = any (p_ids) and t.state = 'RESERVED') l;
  if v_lanes is not null then
    perform lock_lines(v_lanes, v_lines);
    -- Another writer of the same message may have reserved it too: then its fact puts the message at the end of the line.
    delete from line_entry t using append_intent i
      where i.event_id = any (p_ids) and t.message_id = i.message_id and t.state = 'RESERVED';
    select array_agg(a.lane), array_agg(a.due) into v_lanes, v_dues from advance_lines(v_lanes, v_lines) a;
    if v_lanes is not null then perform wake_lanes(v_lanes, v_dues); end if;
  end if;
  with gone as (delete from append_intent i where i.event_id = any (p_ids) returning i.message_id)
  select array_agg(g.message_id) into v_messages from gone g
    where not exists (select 1 from copied_fact o where o.stream_id = g.message_id);
  v_messages := array(
    select m from unnest(v_messages) m where not exists (select 1 from append_intent i where i.message_id = m));
  delete from message where id = any (v_messages);
  delete from idempotency where message_id = any (v_messages);
  delete from stream_key where stream_id = any (v_messages);
end $$;
