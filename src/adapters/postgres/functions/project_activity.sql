create or replace function project_activity(
  p_generation int, p_from text, p_to text, p_facts int,
  p_streams uuid[], p_versions int[], p_at_ms bigint[], p_orgs text, p_dossiers text, p_activities text, p_channels text,
  p_messages uuid[], p_actors text, p_details text,
  p_withdrawals json
) returns boolean
language plpgsql volatile
as $$
begin
  if not advance_projection('activity', p_generation, p_from, p_to, p_facts) then return false; end if;
  if cardinality(p_streams) > 0 then
    insert into activity (generation, stream_id, version, org_id, dossier_id, at, activity, channel, message_id, actor, details)
      select p_generation, n.stream_id, n.version, n.org_id, n.dossier_id, 'epoch'::timestamptz + n.at_ms * interval '1 millisecond',
        n.activity, n.channel, n.message_id, n.actor, n.details::json
      from unnest(p_streams, p_versions, p_at_ms, string_to_array(p_orgs, E'\x1e'), string_to_array(p_dossiers, E'\x1e'),
          string_to_array(p_activities, E'\x1e'), string_to_array(p_channels, E'\x1e'), p_messages,
          string_to_array(p_actors, E'\x1e', ''), string_to_array(p_details, E'\x1e'))
        n(stream_id, version, at_ms, org_id, dossier_id, activity, channel, message_id, actor, details)
      where not exists (select 1 from forgotten_message f where f.message_id = n.stream_id)
    on conflict do nothing;
  end if;
  insert into withdrawal as w (generation, org_id, dossier_id, channel, version, open)
    -- The last word of each.
    select distinct on (n.org_id, n.dossier_id, n.channel) p_generation, n.org_id, n.dossier_id, n.channel, n.version, n.open
    from json_to_recordset(p_withdrawals) n(org_id text, dossier_id text, channel text, version int, open boolean)
    order by n.org_id, n.dossier_id, n.channel, n.version desc
  on conflict (generation, org_id, dossier_id, channel) do update set version = excluded.version, open = excluded.open
    where w.version < excluded.version;
  perform erase_again(p_streams);
  return true;
end $$;
