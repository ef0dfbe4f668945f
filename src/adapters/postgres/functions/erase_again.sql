-- Called by a step of a projection: what it wrote of streams that were erased while it held their facts.
create or replace function erase_again(p_streams uuid[]) returns void
language plpgsql volatile as $$
declare
  v_erased uuid[];
begin
  select array_agg(e.stream_id) into v_erased from erased_stream e where e.stream_id = any (p_streams);
  if v_erased is not null then perform erase_rows(v_erased); end if;
end $$;
