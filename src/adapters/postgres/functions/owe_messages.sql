-- As publish_events, where the streams of messages are elsewhere: the messages are written down as owed, with whom they are for.
create or replace function owe_messages(p_events json, p_messages json) returns table (event uuid, other uuid, hash text)
language plpgsql volatile
as $$
begin
  return query select s.event, s.other, s.hash from store_publications(p_events) s;
  if found then return; end if;
  with owed as (
    insert into owed_message (message_id, event_id, name, data, actor, at)
      select m.message, m.event, m.name, m.data::json, m.actor, 'epoch'::timestamptz + m.at_ms * interval '1 millisecond'
      from json_to_recordset(p_messages) m(message uuid, event uuid, name text, data text, actor text, at_ms bigint)
  )
  insert into fan_out (event_id, destination, message_id)
    select m.event, m.destination, m.message
    from json_to_recordset(p_messages) m(message uuid, event uuid, destination uuid);
end $$;
