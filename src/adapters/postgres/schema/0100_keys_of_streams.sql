-- Promises: what facts in EventStoreDB say of a person is sealed with a key that is here and nowhere else. It is here before the first
-- event that was sealed with it, and once it is thrown away no other one comes in its place.
create table stream_key (
  -- The id of the message, or that of the journal's stream.
  stream_id uuid primary key,
  -- A text of SealedTexts.ts. Null: thrown away, and all that it had sealed is erased.
  sealed text
);

-- Streams that were erased here, and whose events nobody has looked at since: those from before they were sealed may be in the clear.
create table erased_elsewhere (
  stream_id uuid primary key,
  stream text not null,
  erasure uuid not null
);
create index erased_elsewhere_of on erased_elsewhere (erasure);

-- Of its messages, those whose streams had to go with them.
alter table erasure add column forgotten int not null default 0;

-- An entry that says something of a person, and the key that its message gets if it has none.
alter type reservation add attribute personal boolean;
alter type reservation add attribute fact_key text;

-- They are told the erasure they work for.
drop function if exists erase_jobs(text, uuid[], text[]);
drop function if exists erase_requests(text, text, text[]);
