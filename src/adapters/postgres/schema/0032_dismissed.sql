-- Promises: dead letters that want somebody are found without those that were dismissed.

create index message_view_wants_somebody on message_view (generation, org_id, ended_at desc, id desc)
  where status in ('FAILED', 'DEAD_LETTER') and (view ->> 'dismissed') is null;
