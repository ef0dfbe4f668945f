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
end $$;
