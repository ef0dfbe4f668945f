-- Leases due receipts, the longest due first.
create or replace function claim_receipts(p_limit int, p_lease_ms bigint)
returns table (id bigint, org_id text, account_id uuid, raw text, tries int)
language plpgsql volatile
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  return query
    with due as (
      select r.id from receipt_inbox r where r.parked_at is null and r.due_at <= v_now
      order by r.due_at, r.id limit p_limit for update skip locked
    )
    update receipt_inbox r set due_at = v_now + p_lease_ms * interval '1 millisecond'
    from due where r.id = due.id
    returning r.id, r.org_id, r.account_id, r.raw, r.tries;
end $$;
