-- Answers committed commands invisible in the snapshot `p_seen` (null: all), for the one process that moves them, with the snapshot they were read
-- in; no row while another process moves. Commands once seen are not looked at again, so a long transaction that keeps dead rows costs nothing here.
create or replace function take_commands(p_holder uuid, p_lease_ms int, p_seen pg_snapshot, p_limit int)
returns table (seen text, tx text, n bigint, id uuid, org_id text, type text, key text, request text,
  traceparent text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_until timestamptz := v_now + p_lease_ms * interval '1 millisecond';
  v_half timestamptz := v_now + p_lease_ms * interval '0.5 milliseconds';
begin
  update sql_command_mover set holder = p_holder, lease_until = v_until
    where (holder = p_holder and lease_until < v_half) or lease_until < v_now;
  if not exists (select from sql_command_mover m where m.holder = p_holder and m.lease_until > v_now) then return; end if;
  if p_seen is null then
    return query
      select s.now::text, c.tx::text, c.n, c.id, c.org_id, c.type, c.key, c.request, c.traceparent
      from (select pg_current_snapshot() as now) s
      left join lateral (
        select * from (
          select *, sum(octet_length(request)) over (order by tx, n) - octet_length(request) as before
          from (select * from sql_command order by tx, n limit p_limit) first
        ) sized where before < {{commandsAtOnce}}
      ) c on true
      order by c.tx, c.n;
  else
    return query
      select s.now::text, c.tx::text, c.n, c.id, c.org_id, c.type, c.key, c.request, c.traceparent
      from (select pg_current_snapshot() as now) s
      left join lateral (
        select * from (
          select *, sum(octet_length(request)) over (order by tx, n) - octet_length(request) as before
          from (
            select * from (
              select * from sql_command where tx = any (array(select pg_snapshot_xip(p_seen)))
              union all select * from sql_command where tx >= pg_snapshot_xmax(p_seen)
            ) fresh order by tx, n limit p_limit
          ) first
        ) sized where before < {{commandsAtOnce}}
      ) c on true
      order by c.tx, c.n;
  end if;
end $$;
