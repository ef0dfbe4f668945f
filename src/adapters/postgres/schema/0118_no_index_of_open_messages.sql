-- Promises: one entry less is written for each message that waits. Those that have not ended are found by when they end.
drop index concurrently if exists message_view_open;
