-- Promises: the next erasure and the next replay of each org are found without reading those of others.
create index erasure_of_org_next on erasure (org_id, next_at) where ended_at is null;
create index replay_of_org_next on replay (org_id, next_at) where next_at < 'infinity';
-- An older release reads the few that are open in another order.
drop index erasure_next;
drop index replay_next;
