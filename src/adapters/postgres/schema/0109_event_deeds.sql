-- Promises: journals that tell of one deed are found by their age, and a message that was blocked for want of a consent is such a deed: each
-- request that is blocked leaves one.
create index concurrently if not exists event_deeds on event (at, stream_id) where version = 1 and stream ~ '^(access|blocked|command|replay)-';
