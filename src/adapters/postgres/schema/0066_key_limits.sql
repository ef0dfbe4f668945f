-- What a key may ask of each process in a second; a limit that is not named is none.
alter table api_key add column limits jsonb not null default '{}';
