-- Promises: streams of other things than messages live in the same log under the same lock. Their stream_id is derived from
-- their name, which is kept beside it; a message's stream has no name but its id.
alter table posthaste.event add column stream text;
