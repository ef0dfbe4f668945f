-- The one place where a stored fact is changed: it keeps its shape, and what it says of a person is replaced. Messages must have ended,
-- and their bodies be erased. In one transaction with all that is derived from the facts, and with what stands beside them. Answers
-- false, and changes nothing, while a job that is for them has not begun (erase_jobs). Receipts that are sealed are found by p_names: the
-- hashes of names_of_people, for each of the data keys with which those texts begin that are in p_keys. Answers false, too, while there is
-- a receipt of another key: it came since somebody looked, and once these messages are erased nobody knows by which names to look.
create or replace function erase_streams(
  p_erasure uuid, p_org text, p_messages uuid[], p_events uuid[], p_names text[] default '{}', p_keys text[] default null
) returns boolean
language plpgsql volatile as $$
declare
  v_journals uuid[];
  v_names text[];
  v_texts text[];
  v_lanes uuid[];
  v_lines text[];
  v_woken uuid[];
  v_dues timestamptz[];
begin
  -- Every projector takes its row first too: a step that comes after this sees what was erased.
  perform 1 from projection order by name, generation for update;
  if p_keys is not null and exists (select from receipt_inbox r where r.org_id = p_org and r.names is not null
      and not exists (select from unnest(p_keys) k where starts_with(r.raw, k))) then return false; end if;
  select array_agg(distinct t.text) into v_texts from event e
    cross join lateral (values (e.data ->> 'to'), (e.data ->> 'correlationId')) t(text)
    where e.stream_id = any (p_messages) and e.version = 1 and t.text is not null and t.text <> 'erased'
      and t.text is distinct from e.data ->> 'destination';
  if not erase_jobs(p_erasure, p_org, p_messages, v_texts) then return false; end if;
  select coalesce(array_agg(p.stream_id), '{}') into v_journals from publication p where p.org_id = p_org and p.id = any (p_events);
  delete from erased_stream where at < clock_timestamp() - interval '1 day';
  insert into erased_stream (stream_id) select unnest(p_messages || v_journals) on conflict do nothing;

  -- What a provider reports of them later is nobody's.
  v_names := names_of_people(p_messages);
  delete from receipt_inbox r where r.org_id = p_org
    and case when r.names is null then exists (select 1 from unnest(v_names) n where position(n in r.raw) > 0) else r.names && p_names end;

  select array_agg(l.lane), array_agg(l.line) into v_lanes, v_lines from (
    select t.lane, t.line from line_entry t where t.message_id = any (p_messages)
    union select (e.data ->> 'destination')::uuid, e.data ->> 'orderingKey' from event e
      where e.stream_id = any (p_messages) and e.version = 1 and e.data ->> 'orderingKey' is not null) l;

  update event e set data = erased_fact(e.name, e.data), actor = erased_actor(e.actor)
    where e.stream_id = any (p_messages || v_journals);
  delete from append_intent where message_id = any (p_messages);
  update message m set recipient = null, dossier_id = null, correlation_id = null, metadata = null, body = null, event_id = null,
      data = erased_fact('MessageQueued@1', m.data) where m.id = any (p_messages);
  delete from detail where stream_id = any (p_messages);
  delete from idempotency where message_id = any (p_messages);
  delete from event_idempotency where event_id = any (p_events);
  update publication set correlation_id = null, dossier_id = null, entries = null where id = any (p_events) and org_id = p_org;
  delete from sql_command_alias where became = any (p_messages || p_events);

  -- A dead letter that held its line has no ordering key any more, nor has the place where its line begins.
  if v_lanes is not null then
    perform lock_lines(v_lanes, v_lines);
    delete from line_entry t where t.message_id = any (p_messages);
    select array_agg(a.lane), array_agg(a.due) into v_woken, v_dues from advance_lines(v_lanes, v_lines) a;
    if v_woken is not null then perform wake_lanes(v_woken, v_dues); end if;
  end if;

  update erasure set messages = messages + cardinality(p_messages), events = events + cardinality(v_journals) where id = p_erasure;
  return true;
end $$;
