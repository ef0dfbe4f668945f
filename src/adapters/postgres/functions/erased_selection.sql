-- Part of erased_fact: which messages a job is for, without whom they are for. What is no object says nothing of the kind.
create or replace function erased_selection(p_selection jsonb) returns jsonb
language sql immutable as $$
  select case when jsonb_typeof(p_selection) = 'object' then p_selection || coalesce((
    select jsonb_object_agg(k.key, k.said
      || case when names_person(k.said -> 'to') then '{"to": "erased"}' else '{}' end::jsonb
      || case when k.said ? 'correlationId' then '{"correlationId": "erased"}' else '{}' end::jsonb)
    from (values ('filter', p_selection -> 'filter'), ('waiting', p_selection -> 'waiting')) k(key, said)
    where jsonb_typeof(k.said) = 'object'), '{}')
  else p_selection end
$$;
