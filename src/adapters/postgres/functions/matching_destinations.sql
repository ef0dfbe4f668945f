-- The destinations that want events of a type: `p_patterns` are the type, each of its beginnings, and all. Reads only matching subscriptions and
-- their destinations.
create or replace function matching_destinations(p_org text, p_patterns text[])
returns table (id uuid, channel text, retry jsonb)
language plpgsql stable
as $$
begin
  return query
    select d.id, d.channel, d.settings -> 'retry'
    from (select distinct s.destination from subscription s where s.org_id = p_org and s.pattern = any (p_patterns)) s
    cross join lateral (select * from destination d where d.id = s.destination and d.removed_at is null offset 0) d
    order by d.id;
end $$;
