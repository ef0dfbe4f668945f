-- The name of a batch is its fence, so no name may be given twice. A sequence did: a claim need not reach the disk before it
-- answers, and a crash took the number back. Batches that are held get another name here, so their leases run out.
alter table claim alter column batch type uuid using gen_random_uuid();
drop sequence batch;
alter type reservation alter attribute fence type uuid;
