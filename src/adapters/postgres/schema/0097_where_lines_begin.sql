-- Promises: who looks for the head of a line begins where the line begins. An entry that was deleted stays in its index until it is
-- vacuumed, and while a transaction elsewhere is open it is not: whoever began at the front walked past all of them.
-- No entry of the line is before first_nth. Only lines whose head was far have a row: see advance_lines. Entries come in under
-- the line's lock and behind those that are there, so it stays true; after a while the row is forgotten, see mend_lines.
create table line_front (
  lane uuid not null,
  line text not null,
  first_nth bigint not null,
  at timestamptz not null,
  primary key (lane, line)
) with (fillfactor = 50);
