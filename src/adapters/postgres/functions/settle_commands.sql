-- Ends decided commands: refused ones, and those that became another message or event than their id, are kept for a month.
create or replace function settle_commands(
  p_txs xid8[], p_ns bigint[], p_refused int[], p_problems text[], p_aliases int[], p_became uuid[]
) returns void
language plpgsql volatile as $$
begin
  if cardinality(p_refused) > 0 then
    insert into refused_command (id, org_id, type, key, request, problem)
      select c.id, c.org_id, c.type, c.key, c.request::jsonb, r.problem::json
      from unnest(p_refused, p_problems) r(i, problem)
      join sql_command c on c.tx = p_txs[r.i] and c.n = p_ns[r.i]
    on conflict do nothing;
    delete from refused_command where at < clock_timestamp() - interval '30 days';
  end if;
  if cardinality(p_aliases) > 0 then
    insert into sql_command_alias (id, became)
      select c.id, a.became from unnest(p_aliases, p_became) a(i, became)
      join sql_command c on c.tx = p_txs[a.i] and c.n = p_ns[a.i]
    on conflict do nothing;
    delete from sql_command_alias where at < clock_timestamp() - interval '30 days';
  end if;
  delete from sql_command c using unnest(p_txs, p_ns) d(tx, n) where c.tx = d.tx and c.n = d.n;
end $$;
