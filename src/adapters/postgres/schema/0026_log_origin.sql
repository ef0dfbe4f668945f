-- Which server the order of the log was last continued on, so that another one is noticed (see continue_log). Null: no server
-- has said so yet, or it does not tell.
alter table log_base add column system_identifier bigint, add column timeline int;
