-- Promises: where the streams of messages live elsewhere, a message has its place in its line from before its first fact is
-- written, so what was asked for in one order stands in that order, whenever each append is done. A RESERVED place holds up
-- those behind it until its fact is applied, is given up, or has been waited for long enough (expire_reservations).
alter table line_entry drop constraint line_entry_state_check;
alter table line_entry add constraint line_entry_state_check check (state in ('RESERVED', 'WAITING', 'GIVEN', 'DEAD')) not valid;
create index line_entry_reserved on line_entry (nth) where state = 'RESERVED';
-- Of an entry that enters a line.
alter type reservation add attribute line_lane uuid;
alter type reservation add attribute line text;
