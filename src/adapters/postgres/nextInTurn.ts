/**
 * The next job whose time has come. Orgs take turns, by their names: however many jobs one has, another's waits for one piece of work
 * of each org. Both halves read the index of `(org_id, next_at)` up to the first row that is due.
 */
export const nextInTurn = (table: "erasure" | "replay", isOpen: string, last: `$${number}`): string => {
  const firstOf = (orgs: string) => `(select id from ${table}
      where ${isOpen} and next_at <= clock_timestamp() and org_id ${orgs} ${last}
      order by org_id, next_at limit 1 for update skip locked)`
  return `coalesce(${firstOf(">")}, ${firstOf("<=")})`
}
