-- The next facts after which a journal that goes on for ever rests, in the order of their streams. `is_front` is the last of before p_before
-- in its journal, as far as they were looked at, where something stands before it.
create or replace function resting_fronts(p_before timestamptz, p_id uuid, p_version int, p_limit int)
returns table (stream_id uuid, version int, stream text, is_front boolean)
language sql stable
as $$
  select r.stream_id, r.version, r.stream, r.at < p_before and r.is_last
      and exists (select from event b where b.stream_id = r.stream_id and b.version < r.version)
    from (
      select e.stream_id, e.version, e.stream, e.at,
        row_number() over (partition by e.stream_id, e.at < p_before order by e.version desc) = 1 as is_last
      from (
        select e.stream_id, e.version, e.stream, e.at from event e
        where e.stream ~ '^({{endless}})-' and e.name ~ '^({{rests}})@'
          and (e.stream_id, e.version) > (coalesce(p_id, '00000000-0000-0000-0000-000000000000'), coalesce(p_version, 0))
        order by e.stream_id, e.version limit p_limit) e) r
    order by r.stream_id, r.version;
$$;
