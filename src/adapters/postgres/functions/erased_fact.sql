-- As the domain says (domain/erasure/erased.ts), which a test holds it to.
create or replace function erased_fact(p_name text, p_data json) returns json
language sql immutable as $$
  -- Facts that no release can read are erased too: they may be of any shape.
  select case when jsonb_typeof(d.data) <> 'object' then 'null' else (
    (d.data - 'traceparent' - 'routingKey')
    || coalesce((select jsonb_object_agg(k, null) from unnest(array['dossierId', 'orderingKey', 'correlationId', 'metadata', 'providerMessageId']) k
        where d.data ? k and not (k = 'dossierId' and d.type = 'MessageBlocked')), '{}')
    || case when names_person(d.data -> 'to') then '{"to": "erased"}' else '{}' end::jsonb
    || case when jsonb_typeof(d.data -> 'error') = 'object'
        then jsonb_build_object('error', d.data -> 'error' || '{"message": "erased"}') else '{}' end
    || case when d.type in ('MessageCancelled', 'MessageDismissed', 'MessageReplayed', 'MessageBodyErased', 'EventErased', 'ReplayRequested', 'ReplayCancelled')
        and d.data ? 'reason' then '{"reason": null}' else '{}' end::jsonb
    || case when d.type = 'CommandRefused' then '{"key": null, "detail": "erased"}' else '{}' end::jsonb
    || case when d.type = 'ReplayRequested' and jsonb_typeof(d.data -> 'selection') = 'object'
        then jsonb_build_object('selection', erased_selection(d.data -> 'selection')) else '{}' end
  )::json end
  from (select p_data::jsonb as data, split_part(p_name, '@', 1) as type) d
$$;
