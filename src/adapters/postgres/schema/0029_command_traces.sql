-- The trace that a command's caller names (W3C); what is malformed is kept and means nothing.
alter table sql_command add column traceparent text;
