-- Promises: retention finds removed destinations by when they were removed, and lanes that are no destination's, without looking at others.
create index destination_removed on destination (removed_at, id) where removed_at is not null;
create index lane_of_nobody on lane (lane) where org_id is null;
