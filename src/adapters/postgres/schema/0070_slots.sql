-- Promises: what a lane's rate limit handed out ahead, and what of it came back.

alter table lane
  -- From here on no slot of the rate limit is handed out yet; slot_at says when that is worth a visit.
  add column next_slot_at timestamptz,
  -- Slots before next_slot_at that nobody will use; null when there are none.
  add column returned_slots timestamptz[];
