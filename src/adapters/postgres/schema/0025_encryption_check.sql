-- Promises: a value that only the encryption key of this database opens, so that another key is refused at the start, before it
-- seals anything or fails to open something. One row.
create table encryption_check (one boolean primary key default true check (one), sealed text not null);
