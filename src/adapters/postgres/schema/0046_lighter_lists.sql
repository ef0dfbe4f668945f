-- Promises: the same lists in the same order, with less to write for each message. When a waiting message ends is a column, so
-- that its index reads no JSON; the audit's list grows at its end, where a page that is full is left full.

alter table message_view add column ends_at timestamptz;
update message_view set ends_at = (view ->> 'endsAt')::timestamptz
  where status = 'QUEUED' and view ->> 'endsAt' is not null;
drop index message_view_ends;
create index message_view_ends on message_view (generation, ends_at, id) where ends_at is not null;

create index audit_of_org on audit (generation, org_id, at, stream_id, version);
drop index audit_newest;
