-- Promises: a message that can't be processed stands here and in no batch, until it is tried again; whoever moves it does both in
-- one transaction. Where it belongs is not kept: its facts say it, once they can be read.
create table set_aside (
  message_id uuid primary key,
  -- As far as they are known.
  org_id text,
  lane uuid,
  reason text not null,
  detail text not null,
  since timestamptz not null default clock_timestamp(),
  -- How often it was set aside in a row.
  tries int not null default 1,
  -- When it is tried again; null while it is tried, which is over when it is set aside again or a day has passed.
  again_at timestamptz,
  tried_at timestamptz
) with (fillfactor = 70);
create index set_aside_again on set_aside (again_at) where again_at is not null;
create index set_aside_tried on set_aside (tried_at) where again_at is null;
