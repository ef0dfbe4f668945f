-- Before when an org's messages have ended that are forgotten: by its own days of this name, p_max at most, and else p_standard, which is
-- null where they are kept for ever.
create or replace function forgotten_before(p_org text, p_days text, p_now timestamptz, p_max float8, p_standard timestamptz)
returns timestamptz language sql stable as $$
  select coalesce((
    select p_now - least((o.retention ->> p_days)::float8, p_max) * interval '1 day'
    from org o where o.id = p_org and o.retention ->> p_days is not null
  ), p_standard)
$$;
