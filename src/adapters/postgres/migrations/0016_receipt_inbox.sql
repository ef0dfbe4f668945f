-- Promises: a receipt that was answered for is here until it is applied or parked; the same words of the same account stand
-- here once; a claim is a lease, by this server's clock.

create table posthaste.receipt_inbox (
  id bigint generated always as identity primary key,
  org_id text not null,
  account_id uuid not null,
  -- Text and not JSON: what a provider writes may hold characters that JSON types refuse.
  raw text not null,
  digest bytea not null,
  tries int not null default 0,
  due_at timestamptz not null,
  -- Parked: kept to be looked into, and not handed out.
  parked_at timestamptz,
  unique (account_id, digest)
);
create index receipt_inbox_due on posthaste.receipt_inbox (due_at, id) where parked_at is null;
create index receipt_inbox_of_org on posthaste.receipt_inbox (org_id, (parked_at is null));

-- The longest due first. The settings pin the plan to the index: statistics say nothing about a table that is empty between bursts.
create function posthaste.claim_receipts(p_limit int, p_lease_ms bigint)
returns table (id bigint, org_id text, account_id uuid, raw text, tries int)
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
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
