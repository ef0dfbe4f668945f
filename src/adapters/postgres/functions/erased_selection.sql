-- Part of erased_fact: which messages a job is for, without whom they are for.
create or replace function erased_selection(p_selection jsonb) returns jsonb
language sql immutable as $$
  select p_selection
    || case when names_person(p_selection #> '{filter,to}') then jsonb_build_object('filter', p_selection -> 'filter' || '{"to": "erased"}') else '{}' end
    || case when p_selection ? 'waiting' then jsonb_build_object('waiting', p_selection -> 'waiting'
        || case when names_person(p_selection #> '{waiting,to}') then '{"to": "erased"}' else '{}' end::jsonb
        || case when p_selection -> 'waiting' ? 'correlationId' then '{"correlationId": "erased"}' else '{}' end::jsonb) else '{}' end
$$;
