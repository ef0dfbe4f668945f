-- The refused commands of an org that name a person so. A recipient stands in a command as its caller wrote it.
create or replace function sought_commands(p_org text, p_field text, p_values text[]) returns table (id uuid)
language sql stable as $$
  select c.id from refused_command c where c.org_id = p_org and case p_field
    when 'metadata' then c.request #>> array['metadata', p_values[1]] = p_values[2]
    when 'recipient' then c.request ->> 'to' = any (p_values)
      or regexp_replace(c.request ->> 'to', '[^0-9]', '', 'g') = any (p_values)
    else c.request ->> p_field = any (p_values) end
$$;
