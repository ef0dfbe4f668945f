-- What a provider calls these messages and the people they are for.
create or replace function names_of_people(p_messages uuid[]) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct n.name), '{}') from (
    select d.data ->> 'providerMessageId' as name from detail d where d.stream_id = any (p_messages)
    union all select m.recipient from message m where m.id = any (p_messages) and m.recipient <> m.destination::text
  ) n where n.name is not null
$$;
