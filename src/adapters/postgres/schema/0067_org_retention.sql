-- For how many days what ended of an org is kept, well (endedDays) and as a dead letter (deadLetterDays); what is not named: as long as
-- the installation keeps it.
alter table org add column retention jsonb not null default '{}';
