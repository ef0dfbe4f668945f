-- Part of an erasure, where streams are elsewhere too: whoever has a key in hand seals what nobody can open any more, and whoever asks for
-- one gets none. It comes before all else that is erased of these streams: who keeps copies of their facts looks here first (apply_stored).
create or replace function throw_keys_away(p_erasure uuid, p_streams uuid[]) returns void
language plpgsql volatile as $$
begin
  if not streams_elsewhere() then return; end if;
  insert into erased_elsewhere (stream_id, stream, erasure)
    select u.id, coalesce(e.stream, 'message-' || u.id), p_erasure
    from unnest(p_streams) u(id) left join event e on e.stream_id = u.id and e.version = 1
    -- Of those that were erased before nothing is in the clear.
    where not exists (select from stream_key k where k.stream_id = u.id and k.sealed is null)
    order by u.id
  on conflict do nothing;
  insert into stream_key (stream_id, sealed) select distinct u.id, null from unnest(p_streams) u(id) order by u.id
    on conflict (stream_id) do update set sealed = null;
end $$;
