-- Promises: a key without scopes may what keys could before there were any; what is null holds nothing back.
alter table api_key
  add column scopes text[],
  add column expires_at timestamptz,
  add column networks text[],
  add column prefix text,
  -- Written at most once a minute.
  add column last_used_at timestamptz;
