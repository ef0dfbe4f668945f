-- Journals that tell of one deed: a body that was seen, a key or a command that was refused, a replay. They are found by their age.
create index event_deed on event (at, stream_id) where version = 1 and stream ~ '^(access|command|replay)-';
