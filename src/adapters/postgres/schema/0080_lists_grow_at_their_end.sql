-- Promises: the same lists in the same order, read backwards, with less to write for each message: an index that grows at its end
-- splits no page in two. Every message is written there at least twice, as it waits and as it ended, so half of each page is left
-- free for what comes to the same place again. Indexes are dropped last: readers wait for that, and for nothing else here.

create index message_view_of_org on message_view (generation, org_id, created_at, id) with (fillfactor = 50);
create index message_view_of_status on message_view (generation, org_id, status, created_at, id);
create index message_view_of_recipient on message_view (generation, org_id, recipient, created_at, id) with (fillfactor = 50);
drop index message_view_newest, message_view_status, message_view_to;
