-- The rows of projections as they follow from the facts of streams that were erased.
create or replace function erase_rows(p_streams uuid[]) returns void
language plpgsql volatile as $$
begin
  -- From the row itself: steps of all projections come by here, and one that waited for the step that lists the message would write
  -- back what it read before it.
  update message_view v set dossier_id = null, correlation_id = null, entries = null,
      (recipient, view) = (
        select e.view ->> 'to', e.view::json
        from (
          select erased_fact('', v.view)::jsonb
            || case when json_typeof(v.view -> 'lastError') = 'object'
                then jsonb_build_object('lastError', (v.view -> 'lastError')::jsonb || '{"message": "erased"}') else '{}' end as view
        ) e)
    where v.id = any (p_streams);
  -- What a dossier's consent refused stays with its dossier, as the consent does.
  update audit a set dossier_id = case when a.operation = 'BLOCKED_BY_POLICY' then a.dossier_id end, correlation_id = null,
      actor = erased_actor(a.actor),
      details = (erased_fact('', a.details)::jsonb
        || case when (a.details::jsonb) ? 'message' then '{"message": "erased"}' else '{}' end::jsonb
        || case when a.operation in ('CANCELLED', 'DISMISSED', 'REPLAYED', 'ERASED') or a.subject_type = 'replay' then '{"reason": null}' else '{}' end::jsonb)::json
    from (select p.generation from projection p where p.name = 'audit') g
    where a.generation = g.generation and a.stream_id = any (p_streams);
  delete from activity a using (select p.generation from projection p where p.name = 'activity') g
    where a.generation = g.generation and a.stream_id = any (p_streams) and a.message_id is not null;
  update activity a set details = erased_fact('', a.details)
    from (select p.generation from projection p where p.name = 'activity') g
    where a.generation = g.generation and a.stream_id = any (p_streams);
end $$;
