-- Claims due messages from up to 64 lanes, at most p_limit in all, and returns the batch and the messages as one JSON text, which costs
-- less to read than a row for each.
--   p_room        {lane: count}: what each lane gives that the worker knows of; 0 skips it. Other lanes give p_per_lane
--   p_full_orgs   {org: true}: these give only from lanes in p_room
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
  -- Lanes that stay where they are: each write of a lane leaves a row behind that others walk over.
  v_kept uuid[] := '{}'; v_kept_drained boolean[] := '{}';
  v_woken timestamptz[];
  -- Where to begin in each lane.
  v_begins timestamptz[];
  v_batch uuid;
  -- Of lanes about which there is something to say, which healthy lanes are not; each of their messages names its entry.
  v_odd boolean[];
  v_row lane;
  v_rate record;
  v_generations int[] := '{}'; v_cares text[] := '{}'; v_limited boolean[] := '{}'; v_in_flight int[] := '{}';
  v_passes int[] := '{}';
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
    -- An even share; what earlier lanes did not use goes to the later ones.
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
          v_row.generation := v_row.generation + 1;
          perform begin_probe(v_row, m[1]);
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
    -- A lane that gives four at once has more soon, and is looked at for 250 ms without a message before it goes to sleep. Where its claims
    -- begin is moved on once a second: messages that are gone stay in its index while any transaction of the database is open.
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
  -- Where not all that are due were visited, they take turns: all go to the back.
  if cardinality(v_lanes) = least(64, p_limit) or cardinality(v_visited) + cardinality(v_kept) < cardinality(v_lanes) then
    v_visited := v_visited || v_kept;
    v_drained := v_drained || v_kept_drained;
    v_look := v_look || v_kept_drained;
  end if;
  if cardinality(v_visited) > 0 then perform schedule_lanes(v_visited, v_drained, v_look); end if;

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
             v_in_flight[c.pass], v_limited[c.pass]) else '' end || ']',
      ',' order by c.i) || ']'
    from unnest(v_messages, v_message_lanes, v_dues, v_versions, v_epochs, v_attempts, v_passes) with ordinality
      c(message, lane, due, version, epoch, attempt, pass, i)
    left join message q on q.id = c.message
    left join shared_body s on s.event_id = q.event_id;
end $$;
