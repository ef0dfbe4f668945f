-- Looks at the next messages of its org from before a destination was removed, as the list knows them. Answers whether all were looked at
-- and none names the destination.
create or replace function look_through(p_destination uuid, p_generation int) returns boolean
language plpgsql volatile
as $$
declare
  v_org text;
  v_until timestamptz;
  v_created timestamptz := '-infinity';
  v_id uuid := '00000000-0000-0000-0000-000000000000';
  v_seen int;
  v_named boolean;
begin
  select d.org_id, d.removed_at + interval '1 minute' into v_org, v_until from destination d where d.id = p_destination;
  select l.created_at, l.message_id into v_created, v_id from (
    select l.created_at, l.message_id from looked_through l where l.destination = p_destination and l.generation = p_generation
    union all select v_created, v_id limit 1) l;
  select count(*), coalesce(bool_or(s.names), false), (array_agg(s.created_at order by s.created_at desc, s.id desc))[1],
      (array_agg(s.id order by s.created_at desc, s.id desc))[1]
    into v_seen, v_named, v_created, v_id
    from (
      select l.* from unnest(array[{{statuses}}]) a(status) cross join lateral (
        select v.created_at, v.id, v.view ->> 'destination' = p_destination::text as names from message_view v
        where v.generation = p_generation and v.org_id = v_org and v.status = a.status and v.created_at < v_until
          and (v.created_at, v.id) > (v_created, v_id)
        order by v.created_at, v.id limit {{lookedThrough}}
      ) l order by l.created_at, l.id limit {{lookedThrough}}) s;
  if not v_named and v_seen = {{lookedThrough}} then
    insert into looked_through (destination, generation, created_at, message_id, goes_on)
      values (p_destination, p_generation, v_created, v_id, true)
    on conflict (destination) do update set generation = excluded.generation, created_at = excluded.created_at,
      message_id = excluded.message_id, goes_on = true;
  end if;
  return not v_named and v_seen < {{lookedThrough}};
end $$;
