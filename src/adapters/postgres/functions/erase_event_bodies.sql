-- Erases the body of an event, and bodies and answers of the messages it became. Waits for transactions that are adding a message; later ones find no
-- body to share.
create or replace function erase_event_bodies(p_event uuid) returns void
language plpgsql volatile as $$
declare
  v_messages uuid[];
begin
  perform 1 from shared_body s where s.event_id = p_event for update;
  update shared_body set held = false where event_id = p_event;
  v_messages := array(select f.message_id from fan_out f where f.event_id = p_event);
  update message set body = null, event_id = null where id = any (v_messages) and (body is not null or event_id is not null);
  update detail set body = null, headers = null where stream_id = any (v_messages) and body is not null;
  perform free_shared_bodies(array[p_event]);
end $$;
