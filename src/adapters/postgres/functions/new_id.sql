-- A UUID of version 7: the microseconds of now, and chance. Those that one transaction makes follow each other, and so do the
-- facts of their messages, which are stored in the order of their ids.
create or replace function new_id() returns uuid language sql volatile
as $$
  select encode(
    overlay(
      overlay(uuid_send(gen_random_uuid()) placing substring(int8send(now.us / 1000) from 3) from 1 for 6)
      placing substring(int4send((x'7000'::int + now.us % 1000 * 4096 / 1000)::int) from 3) from 7 for 2),
    'hex')::uuid
  from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as us) now
$$;
