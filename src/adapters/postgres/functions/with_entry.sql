-- Where messages are that have one of these entries of the metadata, as `project_messages` keeps them; at most so many, in no order. The index
-- of entries alone finds them: a server whose statistics say that an entry is common would read the whole list for one that is not there.
-- Good for the statement that asks.
create or replace function with_entry(p_entries uuid[], p_most int) returns setof tid
language plpgsql stable
as $$
begin
  return query select v.ctid from message_view v where v.entries && p_entries limit p_most;
end $$;
