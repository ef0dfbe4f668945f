-- Promises: a disabled destination hands out nothing until it is enabled, from the commit that says so on (see
-- copy_settings_to_lane); what counts against it counts from its last enabling.

alter table destination add column disabled_reason text;
alter table destination add column enabled_at timestamptz;

-- Settings that endpoints have from now on.
update destination set settings = settings || '{"disableAfterMs": 432000000, "caCertificate": null, "clientCertificate": null}'
  where channel = 'webhook';

-- The projection `health`: what became of the attempts at each destination. One row of its state, and one for each five minutes
-- in which an attempt ended, of the last day at most.
create table health (
  generation int not null,
  destination uuid not null,
  -- Of the attempts since the last success; null after a success.
  failing_since timestamptz,
  last_failed_at timestamptz,
  last_succeeded_at timestamptz,
  primary key (generation, destination)
) with (fillfactor = 70);
create index health_failing on health (generation, destination) where failing_since is not null;

create table health_bucket (
  generation int not null,
  destination uuid not null,
  starts_at timestamptz not null,
  succeeded int not null,
  failed int not null,
  -- How many attempts took how long, by the bounds of src/domain/delivery/health.ts.
  latencies int[] not null,
  primary key (generation, destination, starts_at)
) with (fillfactor = 70);
