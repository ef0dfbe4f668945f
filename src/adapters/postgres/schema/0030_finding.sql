-- Promises: every filter of the list of messages has an index that gives its messages in the order of the list, or comes with
-- one that has. An index of what few messages have holds only these.
-- Of the message's metadata, an md5 for each entry with its org: one org's common entry costs another's search nothing, and an
-- index holds no long text.
alter table message_view add column entries uuid[];
update message_view v set entries = array(
    select md5(concat_ws(E'\x1f', v.org_id, e.key, e.value))::uuid from jsonb_each_text((v.view ->> 'metadata')::jsonb) e
  ) where v.view ->> 'metadata' is not null;
create index message_view_entries on message_view using gin (entries) where entries is not null;
create index message_view_to on message_view (generation, org_id, recipient, created_at desc, id desc);
create index message_view_event_type on message_view (generation, org_id, event_type, created_at desc, id desc)
  where event_type is not null;
create index message_view_dossier on message_view (generation, org_id, dossier_id, created_at desc, id desc)
  where dossier_id is not null;
create index message_view_correlation on message_view (generation, org_id, correlation_id, created_at desc, id desc)
  where correlation_id is not null;
create index message_view_error on message_view (generation, org_id, error_code, created_at desc, id desc)
  where error_code is not null;
