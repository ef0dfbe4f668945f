-- Promises: two entries less are written for each message. All messages of an org are listed in order from those in each status, by the
-- index that each list of one status needs.
drop index concurrently if exists message_view_of_org;
