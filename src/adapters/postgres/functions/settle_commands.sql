-- Commands that are decided: what was refused, and what became something else than its id says, is kept for a month. `p_sealed`: the
-- text of each refused request where it is kept sealed; null where it is not.
create or replace function settle_commands(
  p_txs xid8[], p_ns bigint[], p_refused int[], p_problems text[], p_sealed text[], p_aliases int[], p_became uuid[]
) returns void
language plpgsql volatile as $$
begin
  if cardinality(p_refused) > 0 then
    insert into refused_command (id, org_id, type, key, request, problem)
      select c.id, c.org_id, c.type, c.key,
        case when r.sealed is null then c.request::jsonb else sealed_request(c.request::jsonb, r.sealed) end, r.problem::json
      from unnest(p_refused, p_problems, p_sealed) r(i, problem, sealed)
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
