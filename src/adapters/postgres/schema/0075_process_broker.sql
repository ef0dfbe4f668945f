-- Promises: a process says whether it is to use Posthaste's own broker, so that a broker nobody serves can be missed.
alter table process add column broker boolean not null default false;
