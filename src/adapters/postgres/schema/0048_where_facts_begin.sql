-- Whether facts have begun to go out: the first time is chosen where they begin, and never again.
alter table fact_outlet add column begun boolean not null default false;
update fact_outlet set begun = true where position is not null;
