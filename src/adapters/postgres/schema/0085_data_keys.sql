-- Promises: whatever a text was sealed with is here, in the transaction that stored the text (SealedTexts.ts). Each process that
-- seals has a key of its own; the row holds it sealed with an encryption key, whose id is `sealed_by`. Another encryption key
-- means to seal these rows anew, and no text.
create table data_key (
  id uuid primary key,
  sealed text not null,
  sealed_by text not null,
  at timestamptz not null default clock_timestamp()
);
