-- The retry policy of messages that bring none, to destinations that have none; null: as their channels say.
alter table org add column retry jsonb;
