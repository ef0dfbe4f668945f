-- Promises: what the operator has set for an org. An org without a row has no settings. What a suspension holds back is in the lanes
-- (copy_settings_to_lane), which follow in the same transaction.
create table org (
  id text primary key,
  name text,
  suspended text,
  limits jsonb not null default '{}',
  updated_at timestamptz not null
);
create index replay_unfinished on replay (org_id) where next_at < 'infinity';
