-- Promises: an entry of metadata is looked up in an index.
create index concurrently if not exists publication_entries on publication using gin (entries) where entries is not null;
