-- Moves a follower on together with what it found. Answers whether that made more to claim; null, and nothing is done, when it
-- is not where it believes to be.
create or replace function advance_follower(
  p_name text, p_holder text, p_from text, p_to text, p_facts int, p_stored json
) returns boolean
language plpgsql volatile as $$
begin
  update log_follower set position = p_to, facts = facts + p_facts
    where name = p_name and holder = p_holder and position is not distinct from p_from;
  if not found then return null; end if;
  return apply_stored(p_stored, null);
end $$;
