-- Promises: a rotated secret is stored only encrypted, as every secret is, and lies in the row of its destination, so that an
-- attempt reads one version of both. It names its end of grace beside it.

-- The newest first: name, sealed (for this destination and name), until.
alter table destination add column previous_secrets jsonb not null default '[]';
