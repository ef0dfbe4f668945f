/**
 * How the sessions and the functions of the database are planned, in one place: a server that plans otherwise needs another file, not other
 * functions. Statistics say nothing about tables that fill and empty within seconds; with stale ones the planner sorted a
 * whole backlog, or read a whole table, although an index has the right order. So the paths it must not take are closed.
 *
 * A session keeps the plans of a function, whoever calls it next. So a function that several call has an entry of its own:
 * otherwise it is planned for all of them as it was for the first.
 */
export type Planning = Readonly<Record<string, string>>

const byIndex: Planning = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Of a table that looks small the planner would read a whole index once, and keep it for the join.
  enable_material: "off"
}
const inIndexOrder: Planning = { ...byIndex, enable_bitmapscan: "off" }
const once: Planning = { plan_cache_mode: "force_generic_plan" }

/** Of every session. Compiling a claim made it sixty to two thousand times slower, and servers do so by default. */
export const sessionPlanning: Planning = { jit: "off" }

export const planning: Readonly<Record<string, Planning>> = {
  append: { ...byIndex, ...once },
  held_fences: { ...byIndex, ...once },
  closed_gates: { ...byIndex, ...once },
  move_in_queue: { ...byIndex, ...once },
  wake_lanes: { ...byIndex, ...once },
  put_back: { ...byIndex, ...once },
  release: { ...byIndex, ...once },
  take_over: { ...byIndex, ...once },
  claim_due: { ...inIndexOrder, enable_sort: "off", ...once },
  // Read by the destinations of one org that match, however many there are.
  matching_destinations: { ...byIndex, ...once },
  publish_events: byIndex,
  store_publications: byIndex,
  erase_event_bodies: byIndex,
  free_shared_bodies: byIndex,
  forget_destinations: byIndex,
  ready_in: { ...inIndexOrder, ...once },
  behind_in: { ...inIndexOrder, ...once },
  claim_receipts: { ...inIndexOrder, ...once },
  change_lines: byIndex,
  advance_lines: { ...inIndexOrder, ...once },
  project_health: { ...byIndex, ...once },
  // A plan that was kept from when the table was empty reads all of another index for each view. To plan each time takes a
  // fiftieth of the step.
  project_messages: { ...byIndex, plan_cache_mode: "force_custom_plan" },
  report_outcomes: byIndex,
  reserve_appends: byIndex,
  forget: { ...byIndex, ...once }
}
