-- Promises: what everybody may know of a destination's secrets, such as the public half of a key that signs, lies in the clear
-- beside them and changes with them.

-- By name.
alter table destination add column published jsonb not null default '{}';

-- Promises: a message that waits and whose time is over is found without a look at any other, however many wait. Only what still
-- waits when it is projected has an entry.
create index message_view_ends on message_view (generation, (view ->> 'endsAt'), id) where status = 'QUEUED';
