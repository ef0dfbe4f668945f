-- Promises: deeds have one index, and retention knows how far the copies of a journal's front are to go from EventStoreDB too.
drop index if exists event_deed;
-- The stream begins with this version.
create table if not exists forgotten_front (stream text primary key, version int not null);
