-- Answers false, and changes nothing, when another reader was faster.
create or replace function advance_alerts(
  p_from text, p_to text, p_targets uuid[], p_destinations uuid[], p_ats timestamptz[], p_forget timestamptz
) returns boolean
language plpgsql volatile as $$
begin
  update alert_progress set position = p_to where position is not distinct from p_from;
  if not found then return false; end if;
  delete from alert_notice where at < p_forget;
  insert into alert_notice (target_id, destination, at)
    select * from unnest(p_targets, p_destinations, p_ats)
  on conflict (destination, target_id) do update set at = excluded.at;
  return true;
end $$;
