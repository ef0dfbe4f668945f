/**
 * Settings by which sessions and functions are planned. Statistics say nothing about tables that fill and empty within seconds: with
 * stale ones the planner sorted a whole backlog, or read a whole table, beside the right index. So those paths are closed.
 *
 * A session keeps the plans of a function for all callers: a function with several callers has an entry of its own.
 */
type Planning = Readonly<Record<string, string>>

const byIndex: Planning = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // The planner would read a whole index of a table that looks small.
  enable_material: "off"
}
const inIndexOrder: Planning = { ...byIndex, enable_bitmapscan: "off" }
const once: Planning = { plan_cache_mode: "force_generic_plan" }

/** Of every session: compiling made a claim 60 to 2,000 times slower. */
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
  // A plan kept from an empty table reads all of another index for each view; planning takes a fiftieth of the step.
  project_messages: { ...byIndex, plan_cache_mode: "force_custom_plan" },
  report_outcomes: byIndex,
  reserve_appends: byIndex,
  forget: { ...byIndex, ...once }
}
