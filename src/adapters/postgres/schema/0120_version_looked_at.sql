-- Promises: a message that is set aside bears the version of its stream that was looked at, so that later facts can say that somebody has
-- processed it. Null: it was set aside before this was kept.
alter table set_aside add version int;
