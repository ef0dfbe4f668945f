import { DateTime, Duration, Effect, Layer } from "effect"
import { BrokerReports, REPORT_HOLDS_MS } from "../../../src/application/ports/BrokerReports.ts"
import { Memory } from "../Memory.ts"

/** A map by task and process. */
export const layer = Layer.effect(
  BrokerReports,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { brokerReports } = tables
    const byTime = DateTime.Order
    return BrokerReports.of({
      report: (process, task, away) =>
        Effect.sync(() => {
          const at = now()
          const before = brokerReports.get(`${task} ${process}`)
          const since = before?.away === away ? before.since : at
          brokerReports.set(`${task} ${process}`, { task, away, since, at })
        }),
      reach: Effect.sync(() => {
        const held = [...brokerReports.values()].filter(
          ({ at }) => Duration.toMillis(DateTime.distance(at, now())) < REPORT_HOLDS_MS
        )
        const tasks = [...Map.groupBy(held, ({ task }) => task).values()].map((reports) => {
          const reaching = reports.filter(({ away }) => !away).map(({ since }) => since)
          const away = reaching.length === 0
          return {
            away,
            since: away
              ? reports
                  .map(({ since }) => since)
                  .toSorted(byTime)
                  .at(-1)!
              : reaching.toSorted(byTime)[0]!
          }
        })
        const lost = tasks.filter(({ away }) => away).toSorted((a, b) => byTime(a.since, b.since))
        return lost[0] ?? tasks.toSorted((a, b) => byTime(a.since, b.since)).at(-1) ?? null
      })
    })
  })
)
