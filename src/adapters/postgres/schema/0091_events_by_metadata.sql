-- Promises: an event is found by an entry of its metadata, also one that became no message. As in message_view: an md5 for each
-- entry with its org.
alter table publication add column entries uuid[];
update publication p set entries = array(
    select md5(concat_ws(E'\x1f', p.org_id, e.key, e.value))::uuid from json_each_text(f.data -> 'metadata') e
  ) from event f where f.stream_id = p.stream_id and f.version = 1 and f.data ->> 'metadata' is not null;
create index publication_entries on publication using gin (entries) where entries is not null;
