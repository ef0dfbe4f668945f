-- A request whose text is sealed: beside it stays what requests are erased by (sought_commands.sql).
create or replace function sealed_request(request jsonb, sealed text) returns jsonb
language sql immutable as $$
  select jsonb_build_object('sealed', sealed) || coalesce((
    select jsonb_object_agg(k, request -> k) from unnest(array['to', 'dossierId', 'correlationId', 'metadata']) k
    where jsonb_typeof(request -> k) = case k when 'metadata' then 'object' else 'string' end), '{}')
$$;
