-- Promises: an event is found by an entry of its metadata, also one that became no message. As in message_view: an md5 for each
-- entry with its org.
alter table publication add column if not exists entries uuid[];
