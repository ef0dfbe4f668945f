-- Begins a step: true holds the projection's row until commit. A later statement of the step sees what was forgotten before.
create or replace function advance_projection(p_name text, p_generation int, p_from text, p_to text, p_facts int) returns boolean
language plpgsql volatile as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  update projection set position = p_to, facts = facts + p_facts, moved_at = v_now,
      -- A mean over about ten steps.
      rate = coalesce(rate * 0.9, 0) + case when rate is null then 1 else 0.1 end
        * p_facts / greatest(extract(epoch from v_now - moved_at), 0.001)
    where name = p_name and generation = p_generation and position is not distinct from p_from;
  return found;
end $$;
