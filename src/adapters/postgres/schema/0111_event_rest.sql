-- Promises: retention finds the facts after which a journal that goes on for ever rests, as few as they are among all facts.
create index concurrently if not exists event_rest on event (stream_id, version)
  where stream ~ '^(circuit|overdue|outage)-' and name ~ '^(CircuitClosed|CircuitReset|OverdueEnded|BrokerBack)@';
