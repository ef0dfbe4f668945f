-- Promises: an item of a replay is a dead letter, by message and epoch, or an event that its destination missed.

alter table replay_item add column event_id uuid;
alter table replay_item alter column message_id drop not null;
alter table replay_item alter column epoch drop not null;
-- (Not validated: every row there was is a dead letter.)
alter table replay_item add constraint replay_item_is_message_or_event
  check ((event_id is null) = (message_id is not null) and (message_id is null) = (epoch is null)) not valid;
