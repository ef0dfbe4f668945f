-- Part of send and publish. Refuses a malformed command in the caller's own transaction: one that is too large for the relay would hold up all
-- commands.
create or replace function keep_command(
  p_type text, p_org text, p_json jsonb, p_text text, p_key text, p_traceparent text
) returns uuid
language plpgsql volatile as $$
declare
  v_now bigint := date_part('epoch', clock_timestamp()) * 1000000;
  -- A UUID of version 7 to a quarter of a microsecond: facts of its message, stored in the order of ids, are in the order of times.
  v_id uuid := encode(int8send((v_now / 1000 << 16) | 28672 | (v_now % 1000 * 512 / 125))
    || substring(uuid_send(gen_random_uuid()) from 9), 'hex')::uuid;
  v_name text := case p_type when 'SendMessage' then 'message' else 'event' end;
begin
  if p_org is null then
    raise exception 'org must not be null' using errcode = 'null_value_not_allowed';
  end if;
  if p_json is null then
    raise exception '% must not be null', v_name using errcode = 'null_value_not_allowed';
  end if;
  if length(p_org) > 64 or length(p_key) > 255 then
    raise exception '% is too long', case when length(p_org) > 64 then 'org' else 'idempotency_key' end
      using errcode = 'invalid_parameter_value';
  end if;
  if jsonb_typeof(p_json) = 'string' then
    raise exception '% is a JSON string: it was encoded twice', v_name using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(p_text) > {{commandMax}} then
    raise exception '% must have at most {{commandMax}} bytes, and has %', v_name, octet_length(p_text)
      using errcode = 'invalid_parameter_value';
  end if;
  insert into sql_command (id, org_id, type, key, request, traceparent)
    values (v_id, p_org, p_type, p_key, p_text, left(p_traceparent, 100));
  if p_key is null then return v_id; end if;
  if p_type = 'SendMessage' then
    return coalesce((select i.message_id from idempotency i where i.org_id = p_org and i.key = p_key), v_id);
  end if;
  return coalesce((select i.event_id from event_idempotency i where i.org_id = p_org and i.key = p_key), v_id);
end $$;
