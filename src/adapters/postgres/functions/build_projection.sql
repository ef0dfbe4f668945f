-- Answers the build that is under way, or begins one: live at once where there is none, and in place of one of an older fold.
create or replace function build_projection(p_name text, p_version int, p_total bigint) returns setof projection
language plpgsql volatile as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  -- Retention waits for followers, and a build that begins is none.
  perform pg_advisory_xact_lock(lock_key(1));
  insert into projection (name, generation, version, live, total) values (p_name, 1, p_version, true, p_total) on conflict do nothing;
  if not found then
    perform 1 from projection p where p.name = p_name order by p.generation for update;
    update projection p set generation = generation + 1, version = p_version, position = null, facts = 0, total = p_total,
        rate = null, started_at = v_now, moved_at = v_now
      where p.name = p_name and not p.live and p.version < p_version;
    insert into projection (name, generation, version, live, total)
      select p_name, p.generation + 1, p_version, false, p_total from projection p where p.name = p_name and p.live
    on conflict do nothing;
  end if;
  return query select * from projection p where p.name = p_name order by p.live limit 1;
end $$;
