-- Promises: what became of the messages of a replay is counted from their rows.

alter table message_view add column replay_id uuid;
create index message_view_replay on message_view (generation, replay_id, status) where replay_id is not null;
