-- Promises: retention finds the facts after which a journal that goes on for ever rests, as few as they are among all facts, and knows
-- how far the copies of its front are to go from EventStoreDB too.
create index event_rest on event (stream_id, version)
  where stream ~ '^(circuit|overdue|outage)-' and name ~ '^(CircuitClosed|CircuitReset|OverdueEnded|BrokerBack)@';
-- The stream begins with this version.
create table forgotten_front (stream text primary key, version int not null);
