-- Whether a recipient is somebody: what names a destination names no person.
create or replace function names_person(p_to jsonb) returns boolean
language sql immutable as $$
  select coalesce(jsonb_typeof(p_to) = 'string' and p_to #>> '{}' !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', false)
$$;
