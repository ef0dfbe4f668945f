import { DateTime, Duration, Effect, Layer } from "effect"
import {
  BEAT_EVERY_MS,
  type Figures,
  KEPT_FOR_MS,
  LEADS_FOR_MS,
  type Process,
  Processes,
  SEEN_WITHIN_MS
} from "../../../src/application/ports/Processes.ts"
import { Memory } from "../Memory.ts"

export interface RegisteredProcess extends Omit<Process, "alive"> {
  readonly brokerAway: boolean | null
  readonly brokerSince: DateTime.Utc
}

/** A map by id. Here every transaction is over at once, and nobody counts. */
export const layer = Layer.effect(
  Processes,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { processes } = tables
    let leader: { readonly holder: string; readonly until: number } | null = null
    let published: { readonly figures: Figures; readonly at: DateTime.Utc } | null = null
    const silentFor = (lastSeen: DateTime.Utc) => Duration.toMillis(DateTime.distance(lastSeen, now()))
    return Processes.of({
      beat: (given) =>
        Effect.sync(() => {
          const at = now()
          for (const [id, known] of processes) if (silentFor(known.lastSeen) > KEPT_FOR_MS) processes.delete(id)
          const before = processes.get(given.id)
          const brokerSince = before?.brokerAway === given.brokerAway ? before.brokerSince : at
          processes.set(given.id, { ...given, since: before?.since ?? at, lastSeen: at, brokerSince })
          const nowMs = DateTime.toEpochMillis(at)
          if (leader === null || leader.holder === given.id || leader.until < nowMs)
            leader = { holder: given.id, until: nowMs + LEADS_FOR_MS }
          const soon = DateTime.makeUnsafe(nowMs + BEAT_EVERY_MS)
          const receipts = [...tables.receipts.values()].some(
            ({ parkedAt, dueAt }) => parkedAt === null && DateTime.isLessThan(dueAt, soon)
          )
          return {
            at,
            leads: leader.holder === given.id,
            due: receipts ? ["queue", "commands", "receipts", "jobs"] : ["queue", "commands", "jobs"],
            figures: published?.figures ?? null,
            figuresAgeSeconds: published === null ? 0 : silentFor(published.at) / 1000
          }
        }),
      leave: (id) =>
        Effect.sync(() => {
          processes.delete(id)
          if (leader?.holder === id) leader = null
        }),
      list: Effect.sync(() =>
        [...processes.values()].map(({ brokerAway: _, brokerSince: __, ...known }) => ({
          ...known,
          alive: silentFor(known.lastSeen) < SEEN_WITHIN_MS
        }))
      ),
      brokerReach: Effect.sync(() => {
        const trying = [...processes.values()].filter(
          ({ brokerAway, lastSeen }) => brokerAway !== null && silentFor(lastSeen) < SEEN_WITHIN_MS
        )
        if (trying.length === 0) return null
        const reaching = trying.filter(({ brokerAway }) => !brokerAway).map(({ brokerSince }) => brokerSince)
        return reaching.length === 0
          ? { away: true, since: trying.map(({ brokerSince }) => brokerSince).reduce(DateTime.max) }
          : { away: false, since: reaching.reduce(DateTime.min) }
      }),
      oldestTransaction: () => Effect.succeed(null),
      counts: () =>
        Effect.succeed({
          ...{ waiting: {}, parked: 0, oldestDueSeconds: 0, circuits: {}, destinations: {}, refusedCommands: 0 }
        }),
      publish: (holder, figures) =>
        Effect.sync(() => {
          if (leader?.holder === holder) published = { figures, at: now() }
        }),
      connections: () => []
    })
  })
)
