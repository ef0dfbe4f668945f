-- Promises: a claim hands out what it did, in a document that costs less to write.

create or replace function claim_due(
  p_worker text, p_limit int, p_per_lane int, p_room_lanes uuid[], p_rooms int[], p_full_orgs text[], p_lease_ms int
) returns table (batch uuid, messages text)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
  v_lanes uuid[];
  v_lane uuid;
  v_share int;
  v_take int;
  v_n int;
  v_left int := p_limit;
  v_messages uuid[] := '{}'; v_message_lanes uuid[] := '{}'; v_dues timestamptz[] := '{}';
  v_versions int[] := '{}'; v_epochs int[] := '{}'; v_attempts int[] := '{}';
  m uuid[]; d timestamptz[]; v int[]; e int[]; a int[];
  v_visited uuid[] := '{}'; v_drained boolean[] := '{}';
  -- Lanes that may stay where they are: each write of a lane leaves what it was behind, and while a transaction elsewhere is open
  -- everybody who looks the lane up walks over that.
  v_kept uuid[] := '{}'; v_kept_drained boolean[] := '{}';
  v_woken timestamptz[];
  -- Where to begin in each lane, and those that were looked through for long all the same.
  v_begins timestamptz[];
  v_blocks bigint := pg_stat_get_xact_blocks_fetched('ready_pkey'::regclass);
  v_blocks_before bigint;
  v_long uuid[] := '{}';
  v_lane_blocks bigint := pg_stat_get_xact_blocks_fetched('lane'::regclass);
  v_busy_from int := {{busyFrom}};
  v_doze interval := {{dozeMs}} * interval '1 millisecond';
  v_batch uuid;
  -- Of lanes about which there is something to say, which healthy lanes are not; each of their messages names its entry.
  v_odd boolean[];
  v_row lane;
  v_generations int[] := '{}'; v_cares text[] := '{}'; v_rates text[] := '{}'; v_in_flight int[] := '{}';
  v_passes int[] := '{}';
  v_now timestamptz;
  v_free timestamptz[];
  v_slots timestamptz[] := '{}';
begin
  select array_agg(t.lane), array_agg(t.odd), array_agg(t.ready_at), array_agg(t.first_due_at)
    into v_lanes, v_odd, v_woken, v_begins from (
    select l.lane, l.ready_at, l.first_due_at, l.generation > 0 or l.failures > 0 or l.rate_limit is not null as odd from lane l
    where l.next_claim_at <= clock_timestamp()
      and not exists (select 1 from unnest(p_room_lanes, p_rooms) full_lane(id, room) where full_lane.id = l.lane and full_lane.room = 0)
      -- A lane has no org as long as nobody has set up its destination.
      and (cardinality(p_full_orgs) = 0 or l.org_id is null or l.org_id <> all (p_full_orgs)
        or exists (select 1 from unnest(p_room_lanes) named(id) where named.id = l.lane))
    order by l.next_claim_at limit least(64, p_limit) for update of l skip locked
  ) t;
  if v_lanes is null then return; end if;
  -- What these lanes were before is in the way of everybody who looks for them: they are written as little as can be.
  if pg_stat_get_xact_blocks_fetched('lane'::regclass) - v_lane_blocks > {{laneBlocks}} * cardinality(v_lanes) then
    v_busy_from := 1;
    v_doze := {{longDozeMs}} * interval '1 millisecond';
  end if;

  for v_nth in 1 .. cardinality(v_lanes) loop
    exit when v_left = 0;
    v_lane := v_lanes[v_nth];
    -- What earlier lanes did not use goes to the later ones.
    v_share := ceil(v_left::numeric / (cardinality(v_lanes) - v_nth + 1));
    v_take := least(v_left, v_share,
      coalesce((select r.room from unnest(p_room_lanes, p_rooms) r(id, room) where r.id = v_lane limit 1), p_per_lane));
    if v_odd[v_nth] then
      select * into v_row from lane l where l.lane = v_lane;
      if v_row.circuit <> 'CLOSED' then v_take := 1;
      elsif v_row.in_flight_max is not null then v_take := least(v_take, v_row.in_flight_max);
      end if;
      if v_row.rate_limit is not null then
        v_now := clock_timestamp();
        v_free := slots_free(v_row.rate_limit, v_row.rate_period_ms, v_row.next_slot_at, v_row.returned_slots, v_now, v_take);
        v_take := cardinality(v_free);
        continue when v_take < 1;
      end if;
    end if;
    -- By ctid: found once by the index, and not again to delete it. A server without ctids needs the key here.
    with taken as (
      delete from ready where ctid = any (array(
        select r.ctid from ready r
        where r.lane = v_lane and r.due_at >= v_begins[v_nth] and r.due_at <= clock_timestamp()
        order by r.lane, r.due_at, r.message_id limit v_take for update skip locked))
      returning message_id, due_at, version, epoch, attempt
    )
    select coalesce(array_agg(message_id), '{}'), array_agg(due_at), array_agg(version), array_agg(epoch), array_agg(attempt)
      into m, d, v, e, a from (select * from taken order by due_at, message_id) t;
    v_n := cardinality(m);
    v_blocks_before := v_blocks;
    v_blocks := pg_stat_get_xact_blocks_fetched('ready_pkey'::regclass);
    if v_blocks - v_blocks_before > {{lookBlocks}} + v_n / 64 then v_long := v_long || v_lane; end if;
    if v_n > 0 then
      v_messages := v_messages || m; v_dues := v_dues || d; v_versions := v_versions || v;
      v_epochs := v_epochs || e; v_attempts := v_attempts || a;
      v_message_lanes := v_message_lanes || array_fill(v_lane, array[v_n]);
      v_left := v_left - v_n;
      if v_odd[v_nth] then
        if v_row.rate_limit is not null then
          perform slots_taken(v_row, v_free[v_n]);
          v_slots := v_slots || array_fill(null::timestamptz, array[cardinality(v_messages) - v_n - cardinality(v_slots)])
            || v_free[1:v_n];
        end if;
        if v_row.circuit <> 'CLOSED' then
          v_row.generation := v_row.generation + 1;
          perform begin_probe(v_row, m[1]);
        end if;
        v_generations := v_generations || v_row.generation;
        v_cares := v_cares || case
          when v_row.circuit <> 'CLOSED' then 'probe'
          when v_row.failures > 0 or v_row.in_flight_max is not null then 'watched' end;
        v_rates := v_rates || case when v_row.rate_limit is not null
          then v_row.rate_limit || ',' || v_row.rate_period_ms || ',' || extract(epoch from v_now) * 1000 end;
        v_in_flight := v_in_flight || case when v_row.circuit <> 'CLOSED' then 1 else v_row.in_flight_max end;
        v_passes := v_passes || array_fill(0, array[cardinality(v_messages) - v_n - cardinality(v_passes)])
          || array_fill(cardinality(v_generations), array[v_n]);
      end if;
    end if;
    -- A lane with more, one that gave many at once, and one that was so lately, is looked at again at once: it need not go to sleep and
    -- be woken in between. What was {{dozeMs}} ms without a message does.
    if not v_odd[v_nth] and (v_n >= v_busy_from or (v_n = 0 and v_woken[v_nth] > clock_timestamp() - v_doze)) then
      v_kept := v_kept || v_lane;
      v_kept_drained := v_kept_drained || (v_n < v_take);
    else
      v_visited := v_visited || v_lane;
      v_drained := v_drained || (v_n < v_take);
    end if;
  end loop;
  -- Where not all that are due were visited, they take turns: everybody goes to the back.
  if cardinality(v_lanes) = least(64, p_limit) or cardinality(v_visited) + cardinality(v_kept) < cardinality(v_lanes) then
    v_visited := v_visited || v_kept;
    v_drained := v_drained || v_kept_drained;
  end if;
  if cardinality(v_visited) > 0 then perform schedule_lanes(v_visited, v_drained); end if;
  if cardinality(v_long) > 0 then perform begin_later(v_long); end if;

  if cardinality(v_messages) = 0 then return; end if;
  v_batch := gen_random_uuid();
  insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
    values (v_batch, p_worker, clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0),
      v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts);
  -- One row for the batch: reading a field of a row costs the client as much as reading it out of one document. The document
  -- is put together as text: json_build_array asks for the type of each of its arguments in each row, an eighth of a claim.
  -- A body that is too large to be held in advance is 1.
  return query
    select v_batch, '[' || string_agg(
      '["' || c.message || '","' || c.lane || '",' || (date_part('epoch', c.due) * 1000)::bigint || ',' || c.version || ','
        || c.epoch || ',' || c.attempt || ',' || q.data || ','
        || case when octet_length(coalesce(q.body, s.body)) > {{claimedBodyMax}} then '1'
             else coalesce(to_json(coalesce(q.body, s.body))::text, 'null') end
        || case when c.pass > 0 then ',' || json_build_array(v_generations[c.pass], v_cares[c.pass],
             v_in_flight[c.pass]) else '' end
        || case when c.slot is not null then ',' || extract(epoch from c.slot) * 1000 || ',' || v_rates[c.pass] else '' end || ']',
      ',' order by c.i) || ']'
    from unnest(v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts, v_passes, v_slots) with ordinality
      c(message, lane, due, version, epoch, attempt, pass, slot, i)
    left join message q on q.id = c.message
    left join shared_body s on s.event_id = q.event_id;
end $$;
