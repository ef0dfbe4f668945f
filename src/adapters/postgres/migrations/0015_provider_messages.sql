-- Promises: a message is found by the name its provider gave it from the very commit of the fact that tells the name,
-- and for as long as that fact is there.

-- A new shape of either fact must be added here and in PostgresProviderMessages.ts.
create index event_provider_message on posthaste.event ((data ->> 'providerMessageId'))
  where name in ('AttemptSucceeded@1', 'ReceiptRecorded@1', 'ReceiptRecorded@2') and data ->> 'providerMessageId' is not null;
