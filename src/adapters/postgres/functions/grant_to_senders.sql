-- Lets the role posthaste_sender call send, publish and outcome, and nothing else. Called at every start: a function created again lost its grants. A
-- database user who may not create roles leaves that to one who may.
create or replace function grant_to_senders() returns void
language plpgsql volatile as $$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid from pg_proc p where p.pronamespace = current_schema()::regnamespace
      and (p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0))
  loop
    execute format('revoke execute on function %s from public', v_function);
  end loop;
  if not exists (select from pg_roles where rolname = 'posthaste_sender') then
    begin
      create role posthaste_sender nologin;
    exception when insufficient_privilege or duplicate_object or unique_violation then
      if not exists (select from pg_roles where rolname = 'posthaste_sender') then return; end if;
    end;
  end if;
  execute format('grant usage on schema %I to posthaste_sender', current_schema());
  for v_function in
    select p.oid from pg_proc p where p.pronamespace = current_schema()::regnamespace
      and p.proname in ('send', 'publish', 'outcome')
      and not has_function_privilege('posthaste_sender', p.oid, 'execute')
  loop
    execute format('grant execute on function %s to posthaste_sender', v_function);
  end loop;
end $$;
