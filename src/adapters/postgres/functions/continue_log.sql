-- Called at each start. A restored or moved database counts its transactions anew, and new facts would come before stored ones, or before those that
-- a reader outside has seen. Then the base rises above all of them, with room for facts written after the backup and lost, and the restoration's row
-- is answered.
create or replace function continue_log() returns setof restoration
language plpgsql volatile as $$
declare
  v_known log_base;
  v_system bigint;
  v_timeline int;
  v_backup timestamptz;
  v_last bigint;
  v_next bigint;
  v_why text;
begin
  perform pg_advisory_xact_lock(lock_key(2));
  begin
    v_system := (select system_identifier from pg_control_system());
    v_timeline := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int;
  exception when insufficient_privilege then null;
  end;
  begin
    v_backup := (pg_stat_file('backup_label.old', true)).modification;
  exception when insufficient_privilege then null;
  end;
  select * into v_known from log_base;
  v_last := coalesce((select tx from event order by tx desc, position desc limit 1), 0);
  v_next := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_why := case
    when v_known.system_identifier <> v_system then 'it is on another server than before'
    when v_last >= v_known.base + v_next then 'its server counts transactions below what is stored'
    when v_known.timeline <> v_timeline then 'its server was recovered or promoted'
    when v_backup <> coalesce(v_known.backup, '-infinity') then 'its server was started on a base backup'
  end;
  if v_why is not null then
    -- Writers commit before the base changes, or begin after it.
    lock table event in access exclusive mode;
    v_last := coalesce((select tx from event order by tx desc, position desc limit 1), 0);
    update log_base set base = greatest(base, v_last - v_next) + 4294967296;
    return query insert into restoration (noticed_at, saved_at, why, waiting)
      -- Facts of one time stand in any order.
      select clock_timestamp(), (select max(l.at) from (select at from event order by tx desc, position desc limit 10000) l), v_why,
        (select count(*) from ready) + (select count(*) from line_entry where state = 'WAITING')
          + (select coalesce(sum(cardinality(messages)), 0) from claim)
      where v_last > 0
      returning *;
  end if;
  if (v_known.system_identifier, v_known.timeline, v_known.backup) is distinct from (v_system, v_timeline, v_backup) then
    update log_base set system_identifier = coalesce(v_system, system_identifier), timeline = coalesce(v_timeline, timeline),
      backup = coalesce(v_backup, backup);
  end if;
end $$;
