-- Promises: a replay's set is fixed when it is asked for; what has ended
-- well can be forgotten in short transactions, with all that belongs to it and nothing else.

-- A job that sends dead letters again. The row is what makes it happen; its journal tells how far it is.
create table posthaste.replay (
  id uuid primary key,
  org_id text not null,
  key text,
  request_hash text,
  wanted json not null,
  reason text,
  matched int not null,
  requested_at timestamptz not null,
  -- Not before then: a lease while somebody works on it, a pause afterwards, never again once it has ended.
  next_at timestamptz not null,
  unique (org_id, key)
);
create index replay_of_org on posthaste.replay (org_id, id desc);
create index replay_turn on posthaste.replay (next_at) where next_at < 'infinity';

create table posthaste.replay_item (
  replay_id uuid not null,
  number int not null,
  message_id uuid not null,
  -- The epoch that had ended when it was asked for.
  epoch int not null,
  primary key (replay_id, number)
);

-- To forget a message is to forget its key.
create index idempotency_of_message on posthaste.idempotency (message_id);

-- Looks at the next messages of one org in the order they were accepted and forgets those that ended well before
-- p_before. Answers nothing while another sweep is under way; `next_org` null says that all was looked at.
create function posthaste.sweep_ended(
  p_before timestamptz, p_org text, p_created timestamptz, p_id uuid, p_limit int
) returns table (removed int, next_org text, next_created timestamptz, next_id uuid)
language plpgsql volatile
set search_path = posthaste, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_ids uuid[];
  v_seen int;
begin
  if not pg_try_advisory_xact_lock(7699998) then return; end if;
  -- The projector takes this row first too: so neither waits for the other's view and count rows in a circle.
  perform 1 from projection where name = 'messages' for update;
  p_org := coalesce(p_org, (select min(org_id) from message_count));
  if p_org is null then
    return query select 0, null::text, null::timestamptz, null::uuid;
    return;
  end if;
  select count(*), coalesce(array_agg(v.id) filter (
      where v.status in ('DELIVERED', 'CANCELLED', 'EXPIRED') and v.ended_at < p_before), '{}'),
    max(v.created_at), (array_agg(v.id order by v.created_at desc, v.id desc))[1]
    into v_seen, v_ids, p_created, p_id
    from (
      select id, status, created_at, ended_at from message_view
      where org_id = p_org and created_at < p_before
        and (p_created is null or (created_at, id) > (p_created, p_id))
      order by org_id desc, created_at, id limit p_limit
    ) v;
  delete from event where stream_id = any (v_ids);
  delete from body where message_id = any (v_ids);
  delete from response where message_id = any (v_ids);
  delete from idempotency where message_id = any (v_ids);
  with gone as (
    delete from message_view where id = any (v_ids) returning org_id, channel, status
  ), summed as (
    select g.org_id, g.channel, g.status, count(*) as n from gone g group by g.org_id, g.channel, g.status
  )
  update message_count c set count = c.count - s.n from summed s
    where c.org_id = s.org_id and c.channel = s.channel and c.status = s.status;
  if v_seen < p_limit then
    p_org := (select min(c.org_id) from message_count c where c.org_id > p_org);
    p_created := null;
    p_id := null;
  end if;
  return query select cardinality(v_ids), p_org, p_created, p_id;
end $$;
