-- As publish_events, where the streams of messages are elsewhere: its messages are owed from then on.
create or replace function owe_messages(p_events json, p_writings text[], p_messages uuid[], p_entries text[])
returns table (event uuid, other uuid, hash text)
language plpgsql volatile
as $$
begin
  return query select s.event, s.other, s.hash from store_publications(p_events) s;
  if found then return; end if;
  insert into append_intent (writing, message_id, opens, owed, entry)
    select u.writing, u.message, true, true, u.entry from unnest(p_writings, p_messages, p_entries) u(writing, message, entry);
end $$;
