-- Forgets messages whose streams are gone for good.
create or replace function forget_dead(p_ids uuid[]) returns void
language plpgsql volatile
as $$
begin
  perform 1 from projection order by name, generation for update;
  perform forget_messages(p_ids);
end $$;
