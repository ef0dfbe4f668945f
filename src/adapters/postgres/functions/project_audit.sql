-- Answers false, and changes nothing, when another projector was faster. Texts arrive joined by U+001E, which none of them
-- holds; an empty one is null.
create or replace function project_audit(
  p_generation int, p_from text, p_to text, p_facts int,
  p_streams uuid[], p_versions int[], p_at_ms bigint[], p_orgs text, p_operations text, p_subject_types text,
  p_subject_ids text, p_channels text, p_actors text, p_correlations text, p_dossiers text, p_details text
) returns boolean
language plpgsql volatile
as $$
begin
  if not advance_projection('audit', p_generation, p_from, p_to, p_facts) then return false; end if;
  if cardinality(p_streams) = 0 then return true; end if;
  insert into audit (generation, stream_id, version, org_id, at, operation, subject_type, subject_id, channel, actor,
      correlation_id, dossier_id, details)
    select p_generation, n.stream_id, n.version, n.org_id, 'epoch'::timestamptz + n.at_ms * interval '1 millisecond', n.operation,
      n.subject_type, n.subject_id, n.channel, n.actor, n.correlation_id, n.dossier_id, n.details::json
    from unnest(p_streams, p_versions, p_at_ms, string_to_array(p_orgs, E'\x1e'), string_to_array(p_operations, E'\x1e'),
        string_to_array(p_subject_types, E'\x1e'), string_to_array(p_subject_ids, E'\x1e'),
        string_to_array(p_channels, E'\x1e', ''), string_to_array(p_actors, E'\x1e', ''),
        string_to_array(p_correlations, E'\x1e', ''), string_to_array(p_dossiers, E'\x1e', ''),
        string_to_array(p_details, E'\x1e'))
      n(stream_id, version, at_ms, org_id, operation, subject_type, subject_id, channel, actor, correlation_id, dossier_id, details)
    where not exists (select 1 from forgotten_message f where f.message_id = n.stream_id)
  on conflict do nothing;
  perform erase_again(p_streams);
  return true;
end $$;
