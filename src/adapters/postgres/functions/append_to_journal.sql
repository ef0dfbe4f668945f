-- Appends facts to a journal for a row that the same statement changed: its lock orders the writers of the journal, and change and facts commit
-- together.
create or replace function append_to_journal(p_journal text, p_stream uuid, p_names text[], p_data text[], p_at timestamptz, p_actor text, p_orgs text[])
returns void
language plpgsql volatile as $$
declare
  v_tx bigint := log_tx();
begin
  insert into event (stream_id, stream, tx, at, actor, version, name, data, org_id)
    select p_stream, p_journal, v_tx, p_at, p_actor,
      (select coalesce(max(e.version), 0) from event e where e.stream_id = p_stream) + f.n, f.name, f.data::json, nullif(f.org, '')
    from unnest(p_names, p_data, p_orgs) with ordinality f(name, data, org, n);
end $$;
