/**
 * What every adapter promises of the oldest due message that `Destinations` finds. Call it once per adapter, with
 * a layer that gives an empty store.
 */

import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer } from "effect"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { makeAlertTarget, makeEndpoint, makeTarget, webhook } from "../destinations/samples.ts"
import { inMillis, type newLane, newOrg, opened, type StorePorts } from "../sample.ts"

export type AlertPorts = StorePorts

const endpoint = Effect.fnUntraced(function* (orgId: OrgId) {
  return (yield* makeEndpoint(orgId)).id
})
const httpTarget = Effect.fnUntraced(function* (orgId: OrgId) {
  return (yield* makeTarget(orgId)).id
})

const _atMillis = (milliseconds: number) => DateTime.makeUnsafe(1_700_000_000_000 + milliseconds)
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
}
