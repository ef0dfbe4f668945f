-- Promises: the index of when waiting messages end holds every message that has not ended, and so those under way too: with a moment that
-- never comes. It finds the ones that should be in the queue as well.
update message_view set ends_at = 'infinity' where status in ('QUEUED', 'SENDING') and ends_at is null;
