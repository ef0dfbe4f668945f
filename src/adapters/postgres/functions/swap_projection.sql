create or replace function swap_projection(p_name text, p_generation int) returns boolean
language plpgsql volatile as $$
begin
  -- Neither moves while both are held.
  perform 1 from projection where name = p_name order by generation for update;
  if not exists (
    select 1 from projection l join projection b on b.name = l.name and b.generation = p_generation
    where l.name = p_name and l.live and not b.live and b.position is not distinct from l.position
  ) then
    return false;
  end if;
  delete from projection where name = p_name and live;
  update projection set live = true where name = p_name and generation = p_generation;
  return true;
end $$;
