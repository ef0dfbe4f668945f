create sequence receipt_inbox_id;
create table receipt_inbox (
  id bigint primary key default nextval('receipt_inbox_id'::regclass),
  org_id text not null,
  account_id uuid not null,
  -- Text: a provider may write characters that JSON types refuse.
  raw text not null,
  digest bytea not null,
  tries int not null default 0,
  due_at timestamptz not null,
  -- Kept to be looked into, and not handed out.
  parked_at timestamptz,
  unique (account_id, digest)
);
create index receipt_inbox_due on receipt_inbox (due_at, id) where parked_at is null;
create index receipt_inbox_of_org on receipt_inbox (org_id, ((parked_at is null)));
