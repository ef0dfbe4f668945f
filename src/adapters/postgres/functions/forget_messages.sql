-- Forgets messages with all that is kept of them here. Every projector's row is held by whoever calls: a step that comes after this sees
-- what was forgotten.
create or replace function forget_messages(p_ids uuid[]) returns void
language plpgsql volatile
as $$
begin
  -- Whoever follows the log in which their facts are would put them back: a step of it is over before this begins, or sees that they
  -- are forgotten.
  perform 1 from log_follower where name = 'queue' for update;
  delete from event where stream_id = any (p_ids);
  delete from stream_key where stream_id = any (p_ids);
  delete from copied_fact where stream_id = any (p_ids);
  delete from message where id = any (p_ids);
  delete from detail where stream_id = any (p_ids);
  delete from idempotency where message_id = any (p_ids);
  insert into forgotten_message (message_id) select unnest(p_ids) on conflict do nothing;
end $$;
