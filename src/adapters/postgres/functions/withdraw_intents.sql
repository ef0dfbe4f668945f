-- Takes back what was reserved for appends that will never be. A first body stays where its message is.
create or replace function withdraw_intents(p_ids uuid[]) returns void
language plpgsql volatile as $$
declare
  v_messages uuid[];
begin
  with gone as (delete from append_intent i where i.event_id = any (p_ids) returning i.message_id)
  select array_agg(g.message_id) into v_messages from gone g
    where not exists (select 1 from copied_fact o where o.stream_id = g.message_id);
  v_messages := array(
    select m from unnest(v_messages) m where not exists (select 1 from append_intent i where i.message_id = m));
  delete from body where message_id = any (v_messages);
  delete from idempotency where message_id = any (v_messages);
end $$;
