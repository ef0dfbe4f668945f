-- Claims due messages from up to 64 lanes, at most p_limit in all, and answers the batch and the messages as one JSON text, which costs less to read
-- than a row for each.
-- p_room, {lane: count}: what each lane gives that the worker knows of; 0 skips it. Other lanes give p_per_lane. p_full_orgs, {org: true}: these give
-- only from lanes in p_room.
create or replace function claim_due(
  p_worker text, p_limit int, p_per_lane int, p_room jsonb, p_full_orgs jsonb, p_lease_ms int
) returns table (batch uuid, messages text)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
  v_lanes uuid[];
  v_lane uuid;
  v_take int;
  v_n int;
  v_left int := p_limit;
  v_messages uuid[] := '{}'; v_message_lanes uuid[] := '{}'; v_dues timestamptz[] := '{}';
  v_versions int[] := '{}'; v_epochs int[] := '{}'; v_attempts int[] := '{}';
  m uuid[]; d timestamptz[]; v int[]; e int[]; a int[];
  v_visited uuid[] := '{}'; v_drained boolean[] := '{}'; v_look boolean[] := '{}';
  -- Lanes that are not written: each write leaves a dead row that claims walk over.
  v_kept uuid[] := '{}'; v_kept_drained boolean[] := '{}';
  v_woken timestamptz[];
  -- Where to begin in each lane.
  v_begins timestamptz[];
  v_batch uuid;
  -- For lanes with a circuit or a limit; each of their messages names its entry.
  v_odd boolean[];
  v_row lane;
  v_rate record;
  v_generations int[] := '{}'; v_cares text[] := '{}'; v_limited boolean[] := '{}'; v_in_flight int[] := '{}';
  v_passes int[] := '{}';
  v_now timestamptz;
  v_expires timestamptz;
  v_locked boolean[];
begin
  select array_agg(t.lane), array_agg(t.odd), array_agg(t.ready_at), array_agg(t.first_due_at)
    into v_lanes, v_odd, v_woken, v_begins from (
    select l.lane, l.ready_at, l.first_due_at, l.generation > 0 or l.failures > 0 or l.rate_limit is not null as odd from lane l
    where l.next_claim_at <= clock_timestamp()
      -- A lane has no org until its destination is set up.
      and coalesce(p_room ->> l.lane::text <> '0', not p_full_orgs ? l.org_id, true)
    order by l.next_claim_at limit least(64, p_limit) for update of l skip locked
  ) t;
  if v_lanes is null then return; end if;

  for v_nth in 1 .. cardinality(v_lanes) loop
    exit when v_left = 0;
    v_lane := v_lanes[v_nth];
    -- An even share; what earlier lanes did not use goes to later ones.
    v_take := least(ceil(v_left::numeric / (cardinality(v_lanes) - v_nth + 1)), coalesce((p_room ->> v_lane::text)::int, p_per_lane));
    if v_odd[v_nth] then
      select * into v_row from lane l where l.lane = v_lane;
      if v_row.circuit <> 'CLOSED' then v_take := 1;
      elsif v_row.in_flight_max is not null then v_take := least(v_take, v_row.in_flight_max);
      end if;
      if v_row.rate_limit is not null then
        v_rate := rate_allowance(v_row.rate_limit, v_row.rate_period_ms, v_row.next_slot_at, clock_timestamp());
        v_take := least(v_take, v_rate.allowed);
      end if;
    end if;
    -- By ctid: the index is searched once.
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
    if v_n > 0 then
      v_messages := v_messages || m; v_dues := v_dues || d; v_versions := v_versions || v;
      v_epochs := v_epochs || e; v_attempts := v_attempts || a;
      v_message_lanes := v_message_lanes || array_fill(v_lane, array[v_n]);
      v_left := v_left - v_n;
      if v_odd[v_nth] then
        if v_row.rate_limit is not null then
          update lane l set next_slot_at = v_rate.from_at + v_n * v_rate.step where l.lane = v_lane;
        end if;
        if v_row.circuit <> 'CLOSED' then
          -- The permit of the probe is the new generation, until it expires. The claim reaches the disk before it answers: a follower
          -- may have read the fact, and a crash would give its place to another one.
          v_row.generation := v_row.generation + 1;
          v_now := date_trunc('milliseconds', clock_timestamp());
          v_expires := v_now + coalesce(v_row.permit_ms, {{timeoutUnknownMs}} + {{permitSpareMs}}) * interval '1 millisecond';
          perform set_config('synchronous_commit', 'on', true);
          insert into event (stream_id, stream, tx, at, version, name, data) values (
            v_row.circuit_stream, 'circuit-' || v_lane, log_tx(), v_now, v_row.generation, {{probedName}},
            replace(replace({{probedData}}, {{holeId}}, m[1]::text),
              {{holeTime}}, to_char(v_expires at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::json);
          update lane l set circuit = 'HALF_OPEN', generation = v_row.generation, blocked_until = v_expires where l.lane = v_lane;
        end if;
        v_generations := v_generations || v_row.generation;
        v_cares := v_cares || case
          when v_row.circuit <> 'CLOSED' then 'probe'
          when v_row.failures > 0 or v_row.in_flight_max is not null then 'watched' end;
        v_limited := v_limited || (v_row.rate_limit is not null);
        v_in_flight := v_in_flight || case when v_row.circuit <> 'CLOSED' then 1 else v_row.in_flight_max end;
        v_passes := v_passes || array_fill(0, array[cardinality(v_messages) - v_n - cardinality(v_passes)])
          || array_fill(cardinality(v_generations), array[v_n]);
      end if;
    end if;
    -- A lane that gives four at once has more soon: it sleeps after 250 ms without a message. The begin of its claims moves on once a
    -- second, because deleted messages stay in its index while any transaction of the database is open.
    if not v_odd[v_nth] and (v_n >= 4 or (v_n = 0 and v_woken[v_nth] > clock_timestamp() - interval '250 milliseconds'))
      and (v_n = 0 or d[1] < v_begins[v_nth] + interval '1 second')
    then
      v_kept := v_kept || v_lane;
      v_kept_drained := v_kept_drained || (v_n < v_take);
    else
      v_visited := v_visited || v_lane;
      v_drained := v_drained || (v_n < v_take);
      v_look := v_look || (v_n < v_take or d[1] >= v_begins[v_nth] + interval '1 second');
    end if;
  end loop;
  -- Where not all due lanes were visited, all go to the back.
  if cardinality(v_lanes) = least(64, p_limit) or cardinality(v_visited) + cardinality(v_kept) < cardinality(v_lanes) then
    v_visited := v_visited || v_kept;
    v_drained := v_drained || v_kept_drained;
    v_look := v_look || v_kept_drained;
  end if;
  -- Lanes go to the back while they have more, else to sleep until their next message. One update: one for each lane cost 10 µs more each.
  if cardinality(v_visited) > 0 then
    -- Two statements: the second one sees the messages put in before the lock was taken.
    select array_agg(case when s.look then pg_try_advisory_xact_lock(lane_bucket(s.lane)) else false end order by s.nth) into v_locked
      from unnest(v_visited, v_look) with ordinality s(lane, look, nth);
    v_now := clock_timestamp();
    update lane l set (ready_at, first_due_at) = (
        select case when s.locked and s.drained then coalesce(f.due, 'infinity') else v_now end,
          -- A little before the present at most: who accepts a message writes later than the moment it accepted.
          case when not s.locked then l.first_due_at
            when s.drained then coalesce(f.due, 'infinity')
            else least(v_now - interval '250 milliseconds', f.due) end
        from (select (
          select r.due_at from ready r where s.locked and r.lane = l.lane and r.due_at >= l.first_due_at
          order by r.lane, r.due_at, r.message_id limit 1) as due offset 0) f)
      -- By key, then by ctid, which stays because the claim locked the row. A join by key read all lanes, by a plan kept from when they were few.
      from unnest(v_visited, v_drained, v_locked) s(lane, drained, locked)
      cross join lateral (select k.ctid as place from lane k where k.lane = s.lane limit 1) k
      where l.ctid = k.place;
  end if;

  if cardinality(v_messages) = 0 then return; end if;
  v_batch := gen_random_uuid();
  insert into claim (batch, worker, lease_until, messages, lanes, dues, versions, epochs, attempts)
    values (v_batch, p_worker, clock_timestamp() + make_interval(secs => p_lease_ms / 1000.0),
      v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts);
  -- Put together as text: json_build_array asks for the type of each argument in each row, an eighth of a claim. A body that is too
  -- large to be held in advance is 1.
  return query
    select v_batch, '[' || string_agg(
      '["' || c.message || '","' || c.lane || '",' || (date_part('epoch', c.due) * 1000)::bigint || ',' || c.version || ','
        || c.epoch || ',' || c.attempt || ',' || q.data || ','
        || case when octet_length(coalesce(q.body, s.body)) > {{claimedBodyMax}} then '1'
             else coalesce(to_json(coalesce(q.body, s.body))::text, 'null') end
        || case when c.pass > 0 then ',' || json_build_array(v_generations[c.pass], v_cares[c.pass],
             v_in_flight[c.pass], v_limited[c.pass]) else '' end || ']',
      ',' order by c.i) || ']'
    from unnest(v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts, v_passes) with ordinality
      c(message, lane, due, version, epoch, attempt, pass, i)
    left join message q on q.id = c.message
    left join shared_body s on s.event_id = q.event_id;
end $$;
