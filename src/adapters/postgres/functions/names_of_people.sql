-- What a provider calls these messages and the people they are for, as far as their facts still tell.
create or replace function names_of_people(p_messages uuid[]) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct n.name), '{}') from (
    select e.data ->> 'providerMessageId' as name from event e where e.stream_id = any (p_messages)
    union all select e.data ->> 'to' from event e
      where e.stream_id = any (p_messages) and e.version = 1 and e.data ->> 'to' is distinct from e.data ->> 'destination'
  ) n where n.name is not null and n.name <> 'erased'
$$;
