-- The batches of `p_fences` that are still claimed. The shared lock on their rows keeps a takeover out until commit.
create or replace function held_fences(p_fences uuid[]) returns uuid[] language plpgsql volatile as $$
begin
  return array(select c.batch from claim c where c.batch = any (p_fences) order by c.batch for key share);
end $$;
