create or replace function forget_stream() returns trigger
language plpgsql as $$
begin
  insert into forgotten_stream (message_id) values (old.stream_id) on conflict do nothing;
  delete from applied_change where message_id = old.stream_id;
  delete from append_intent where message_id = old.stream_id;
  return null;
end $$;
create or replace trigger forget_stream after delete on copied_fact for each row when (old.version = 1)
  execute function forget_stream();
