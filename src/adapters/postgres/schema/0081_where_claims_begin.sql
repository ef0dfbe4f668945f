-- Promises: a claim begins where the messages of its lane begin. A row that was deleted stays in its index until it is vacuumed,
-- and while a transaction elsewhere is open it is not: a claim that began at the front walked past all of them.
-- No message of the lane is due before first_due_at. It holds by what holds ready_at: see wake_lanes and schedule_lanes.
alter table lane add column first_due_at timestamptz not null default '-infinity';
