-- Promises: a receipt whose text is sealed is found by whom it names all the same.
-- Hashes of all that it says, with a key that comes from the text's data key (SealedTexts.ts); null where the text is in the clear.
alter table receipt_inbox add names text[];

-- It is told what sealed receipts are found by.
drop function if exists erase_streams(uuid, text, uuid[], uuid[]);
