-- Erases persons from ended messages and events: rows and `detail` change, no fact does. Answers false, and changes nothing, while a job
-- for them has not begun (erase_jobs).
create or replace function erase_streams(p_erasure uuid, p_org text, p_messages uuid[], p_events uuid[]) returns boolean
language plpgsql volatile as $$
declare
  v_journals uuid[];
  -- The provider's ids of these messages, and their recipients.
  v_names text[] := array(
    select d.data ->> 'providerMessageId' from detail d where d.stream_id = any (p_messages) and d.data ->> 'providerMessageId' is not null
    union select m.recipient from message m where m.id = any (p_messages) and m.recipient <> m.destination::text
  );
  v_texts text[];
  v_lanes uuid[];
  v_lines text[];
  v_bucket bigint;
  v_woken uuid[];
  v_dues timestamptz[];
begin
  select array_agg(distinct t.text) into v_texts from message m cross join lateral (values (m.recipient), (m.correlation_id)) t(text)
    where m.id = any (p_messages) and t.text <> m.destination::text;
  if not erase_jobs(p_org, p_messages, v_texts) then return false; end if;
  select coalesce(array_agg(p.stream_id), '{}') into v_journals from publication p where p.org_id = p_org and p.id = any (p_events);

  -- Receipts about them.
  delete from receipt_inbox r where r.org_id = p_org and exists (select 1 from unnest(v_names) n where position(n in r.raw) > 0);
  delete from append_intent where message_id = any (p_messages);
  update message m set recipient = null, dossier_id = null, correlation_id = null, metadata = null, body = null, event_id = null,
      data = (select e.data from event e where e.stream_id = m.id and e.version = 1)
    where m.id = any (p_messages);
  delete from detail where stream_id = any (p_messages || v_journals);
  delete from idempotency where message_id = any (p_messages);
  delete from event_idempotency where event_id = any (p_events);
  update publication set correlation_id = null, dossier_id = null, metadata = null where id = any (p_events) and org_id = p_org;
  delete from sql_command_alias where became = any (p_messages || p_events);

  -- An erased dead letter can't be replayed: it holds no line.
  select array_agg(t.lane), array_agg(t.line) into v_lanes, v_lines from line_entry t where t.message_id = any (p_messages);
  if v_lanes is not null then
    for v_bucket in select lane_buckets(v_lanes) loop
      perform pg_advisory_xact_lock_shared(v_bucket);
    end loop;
    for v_bucket in select distinct line_bucket(u.lane, u.line) from unnest(v_lanes, v_lines) u(lane, line) order by 1 loop
      perform pg_advisory_xact_lock(v_bucket);
    end loop;
    delete from line_entry t where t.message_id = any (p_messages);
    select array_agg(a.lane), array_agg(a.due) into v_woken, v_dues from advance_lines(v_lanes, v_lines) a;
    if v_woken is not null then perform wake_lanes(v_woken, v_dues); end if;
  end if;
  update erasure set messages = messages + cardinality(p_messages), events = events + cardinality(v_journals) where id = p_erasure;
  return true;
end $$;
