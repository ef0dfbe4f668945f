-- Promises: the headers of an answer stand and fall with its body.

alter table response add column headers json;
alter table append_intent add column headers json;
alter type reservation add attribute headers json;
