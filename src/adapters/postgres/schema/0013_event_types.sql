-- Promises: an org's catalogue has one entry for each name; an archived entry keeps its name. The version of an entry names its
-- definition: whoever prepared a schema may keep it for as long as the version stays.
create table event_type (
  id uuid primary key,
  org_id text not null,
  name text not null,
  version int not null,
  description text,
  -- As they were written.
  schema json,
  example json,
  enforce boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  archived_at timestamptz,
  unique (org_id, name)
);
-- An org whose catalogue is enforced has one of these.
create index event_type_enforced on event_type (org_id) where enforce and archived_at is null;
