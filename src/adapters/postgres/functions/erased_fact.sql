-- As the domain says (domain/erasure/erased.ts), which a test holds it to.
create or replace function erased_fact(p_name text, p_data json) returns json
language sql immutable as $$
  select (
    (d.data - 'traceparent' - 'routingKey')
    || coalesce((select jsonb_object_agg(k, null) from unnest(array['dossierId', 'orderingKey', 'correlationId', 'metadata', 'providerMessageId']) k
        where d.data ? k and not (k = 'dossierId' and split_part(p_name, '@', 1) = 'MessageBlocked')), '{}')
    || case when jsonb_typeof(d.data -> 'to') = 'string' and d.data ->> 'to' !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        then '{"to": "erased"}' else '{}' end::jsonb
    || case when jsonb_typeof(d.data -> 'error') = 'object'
        then jsonb_build_object('error', d.data -> 'error' || '{"message": "erased"}') else '{}' end
    || case when split_part(p_name, '@', 1) in ('MessageCancelled', 'MessageDismissed', 'MessageReplayed', 'MessageBodyErased', 'EventErased') and d.data ? 'reason'
        then '{"reason": null}' else '{}' end::jsonb
  )::json
  from (select p_data::jsonb as data) d
$$;
