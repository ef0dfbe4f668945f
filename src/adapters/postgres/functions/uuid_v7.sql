-- The UUID of version 7 with this time, to a quarter of a microsecond, and this chance. Later ones are greater, and so the
-- facts of their messages, which are stored in the order of their ids, are in the order of their times. It is immutable, so it
-- is computed in place: a call of its own would cost `send` several times as much.
create or replace function uuid_v7(microseconds bigint, chance uuid) returns uuid language sql immutable
as $$
  select encode(
    int8send((microseconds / 1000 << 16) | 28672 | (microseconds % 1000 * 512 / 125)) || substring(uuid_send(chance) from 9),
    'hex')::uuid
$$;
