-- Who came by a broker is known by the key of the command. As the domain says (erasedActor in domain/erasure/erased.ts).
create or replace function erased_actor(p_actor text) returns text
language sql immutable as $$
  select case when p_actor like 'amqp:%' then 'amqp' else p_actor end
$$;
