-- Promises: messages that should be in the queue are found without a look at any other, however many have ended.
create index message_view_open on message_view (generation, id) where status in ('QUEUED', 'SENDING');

-- Whose turn it is to look for what is not where it should be.
create table queue_repair (
  one boolean primary key default true check (one),
  holder text not null,
  until timestamptz not null
);
