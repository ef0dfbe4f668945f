/**
 * What every adapter promises of `AlertProgress`, and of the oldest due message that `Destinations` finds. Call it once per adapter, with
 * a layer that gives an empty store.
 */

import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { AlertProgress, type Notice } from "../../../src/application/ports/AlertProgress.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { makeAlertTarget, makeEndpoint, makeTarget, webhook } from "../destinations/samples.ts"
import { inMillis, newLane, newOrg, opened, type StorePorts } from "../sample.ts"

export type AlertPorts = StorePorts | AlertProgress

const endpoint = Effect.fnUntraced(function* (orgId: OrgId) {
  return (yield* makeEndpoint(orgId)).id
})
const httpTarget = Effect.fnUntraced(function* (orgId: OrgId) {
  return (yield* makeTarget(orgId)).id
})

const atMillis = (milliseconds: number) => DateTime.makeUnsafe(1_700_000_000_000 + milliseconds)
export const alertingContract = <E>(name: string, layer: Layer.Layer<AlertPorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, AlertPorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} oldest due message`, () => {
    const put = Effect.fnUntraced(function* (orgId: OrgId, destination: ReturnType<typeof newLane>, dueIn: number) {
      const step = opened({ orgId, destination, dueAt: inMillis(dueIn) })
      yield* (yield* EventStore).append([step.entry])
      return step.after.id
    })

    test(
      "is the one that is due longest in any lane of the org, and only its own",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const [acme, globex, idle] = [newOrg(), newOrg(), newOrg()]
        const [a, b, c] = [yield* endpoint(acme), yield* httpTarget(acme), yield* endpoint(globex)]
        yield* put(acme, a, -60_000)
        const oldest = yield* put(acme, b, -90_000)
        yield* put(acme, b, 5_000)
        const other = yield* put(globex, c, -120_000)
        yield* put(idle, yield* endpoint(idle), 60_000)
        const found = yield* destinations.oldestDue([acme, globex, idle])
        expect([...found.keys()].toSorted()).toEqual([acme, globex].toSorted())
        expect(found.get(acme)).toMatchObject({ messageId: oldest, destination: b })
        expect(Math.abs(DateTime.toEpochMillis(found.get(acme)!.dueAt) + 90_000 - Date.now())).toBeLessThan(10_000)
        expect(found.get(globex)).toMatchObject({ messageId: other, destination: c })
        expect([...(yield* destinations.oldestDue([acme])).keys()]).toEqual([acme])
      })
    )

    test(
      "is none that was handed out, and one behind a pause all the same",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const [a, b] = [yield* endpoint(orgId), yield* endpoint(orgId)]
        yield* (yield* Destinations).setPaused(webhook, orgId, b, true)
        yield* put(orgId, a, -90_000)
        const paused = yield* put(orgId, b, -60_000)
        const request = {
          worker: "w",
          limit: 10,
          perLane: 10,
          room: new Map(),
          fullOrgs: new Set<never>(),
          lease: Duration.minutes(1)
        }
        expect((yield* (yield* Queue).claim(request))!.messages).toHaveLength(1)
        expect((yield* destinations.oldestDue([orgId])).get(orgId)).toMatchObject({ messageId: paused })
      })
    )

    test(
      "is no alert",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { id } = yield* makeAlertTarget(orgId)
        yield* put(orgId, id, -90_000)
        expect((yield* (yield* Destinations).oldestDue([orgId])).size).toBe(0)
      })
    )
  })

  describe(`${name} progress of alerting`, () => {
    const notice = (at: number, change: Partial<Notice> = {}): Notice => ({
      target: newLane(),
      destination: newLane(),
      at: atMillis(at),
      ...change
    })

    test(
      "moves from where it stands, and from nowhere else",
      Effect.gen(function* () {
        const progress = yield* AlertProgress
        const first = notice(1)
        expect(yield* progress.position).toBeNull()
        expect(yield* progress.advance("5", "9", [first], atMillis(0))).toBe(false)
        expect(yield* progress.position).toBeNull()
        expect(yield* progress.notices([first.destination])).toEqual([])
        expect(yield* progress.advance(null, "5", [first], atMillis(0))).toBe(true)
        expect(yield* progress.position).toBe("5")
        expect(yield* progress.notices([first.destination])).toEqual([first])
        expect(yield* progress.advance(null, "9", [], atMillis(0))).toBe(false)
        expect(yield* progress.advance("5", "9", [], atMillis(0))).toBe(true)
      })
    )

    test(
      "is moved by one of several readers",
      Effect.gen(function* () {
        const progress = yield* AlertProgress
        const moves = Array.from({ length: 8 }, (_, n) => progress.advance(null, `${n}`, [], atMillis(0)))
        const answers = yield* Effect.all(moves, { concurrency: 8 })
        expect(answers.filter((moved) => moved)).toHaveLength(1)
      })
    )

    test(
      "keeps the last notice of each pair, until it is old",
      Effect.gen(function* () {
        const progress = yield* AlertProgress
        const a = notice(1)
        const b = notice(5, { destination: a.destination })
        const c = notice(9)
        const later = { ...a, at: atMillis(3) }
        yield* progress.advance(null, "1", [a, b, c], atMillis(0))
        yield* progress.advance("1", "2", [later], atMillis(0))
        const byAt = (notices: ReadonlyArray<Notice>) => notices.toSorted((x, y) => DateTime.Order(x.at, y.at))
        expect(byAt(yield* progress.notices([a.destination]))).toEqual([later, b])
        expect(byAt(yield* progress.notices([c.destination, a.destination]))).toEqual([later, b, c])
        expect(yield* progress.notices([newLane()])).toEqual([])
        yield* progress.advance("2", "3", [], atMillis(5))
        expect(byAt(yield* progress.notices([c.destination, a.destination]))).toEqual([b, c])
      })
    )
  })
}
