/**
 * What every adapter of `AlertTargets`, `AlertSubjects` and `AlertProgress` promises. Call it once per adapter, with
 * a layer that gives an empty store.
 */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer, Redacted } from "effect"
import { Actor } from "../../../src/application/actor.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { AlertProgress, type Notice } from "../../../src/application/ports/AlertProgress.ts"
import { AlertSubjects } from "../../../src/application/ports/AlertSubjects.ts"
import { type AlertTargetSettings, AlertTargets } from "../../../src/application/ports/AlertTargets.ts"
import { type EndpointSettings, Endpoints } from "../../../src/application/ports/Endpoints.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { type HttpTargetSettings, HttpTargets } from "../../../src/application/ports/HttpTargets.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { journalOf } from "../../../src/domain/destination/changes.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { inMillis, newLane, newOrg, opened, type StorePorts } from "../sample.ts"

export type AlertPorts = StorePorts | AlertTargets | AlertSubjects | AlertProgress

const settings: AlertTargetSettings = {
  events: ["circuit", "oldestDue"],
  oldestDueSeconds: 60,
  severity: "critical",
  description: "the night shift"
}

const shared = { retry: null, rateLimit: null, maxInFlight: 4, timeoutMs: 1_000, onDeadLetter: "skip" } as const
const endpointSettings: EndpointSettings = {
  ...shared,
  url: "https://shop.example/hook?key=1",
  eventTypes: null,
  description: null,
  signature: "standard",
  headers: {}
}
const httpSettings: HttpTargetSettings = {
  ...shared,
  url: "https://psp.example/charges",
  method: "POST",
  headers: {},
  bodyFields: {},
  idempotency: "header",
  reconcile: null
}

const endpoint = Effect.fnUntraced(function* (orgId: OrgId) {
  return (yield* (yield* Endpoints).create(orgId, endpointSettings, Redacted.make("whsec_sample"))).id
})
const httpTarget = Effect.fnUntraced(function* (orgId: OrgId) {
  return (yield* (yield* HttpTargets).create(orgId, httpSettings, {})).id
})
const alertTarget = Effect.fnUntraced(function* (orgId: OrgId) {
  return yield* (yield* AlertTargets).add(orgId, yield* endpoint(orgId), "webhook", settings)
})

const atMillis = (milliseconds: number) => DateTime.makeUnsafe(1_700_000_000_000 + milliseconds)
const ids = (targets: ReadonlyArray<{ readonly id: string }>) => targets.map(({ id }) => id)

export const alertTargetsContract = <E>(name: string, layer: Layer.Layer<AlertPorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, AlertPorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  describe(`${name} alert targets`, () => {
    test(
      "are given back as they were added, by org and among all",
      Effect.gen(function* () {
        const targets = yield* AlertTargets
        const [acme, globex] = [newOrg(), newOrg()]
        const id = yield* httpTarget(acme)
        const added = yield* targets.add(acme, id, "pagerduty", settings)
        expect(added).toMatchObject({ ...settings, id, orgId: acme, type: "pagerduty" })
        expect(yield* targets.get(acme, id)).toEqual(added)
        const other = yield* alertTarget(globex)
        expect(ids(yield* targets.all)).toEqual([added.id, other.id].toSorted())
        expect(yield* targets.get(globex, id)).toBeNull()
        expect(yield* targets.update(globex, id, { events: ["circuit"] })).toBeNull()
        expect((yield* targets.list(globex, { cursor: null, limit: 10 })).items).toEqual([other])
        expect(yield* targets.get(acme, newLane())).toBeNull()
      })
    )

    test(
      "change only what was named",
      Effect.gen(function* () {
        const targets = yield* AlertTargets
        const orgId = newOrg()
        const before = yield* alertTarget(orgId)
        yield* Effect.sleep("5 millis")
        const after = yield* targets.update(orgId, before.id, { oldestDueSeconds: null, events: ["deadLetter"] })
        expect(after).toMatchObject({ ...settings, oldestDueSeconds: null, events: ["deadLetter"] })
        expect(after!.createdAt).toEqual(before.createdAt)
        expect(DateTime.isGreaterThan(after!.updatedAt, before.updatedAt)).toBe(true)
        expect(yield* targets.get(orgId, before.id)).toEqual(after)
      })
    )

    test(
      "tell each change in the journal of their destination, and none where nothing was named",
      Effect.gen(function* () {
        const targets = yield* AlertTargets
        const orgId = newOrg()
        const webhook = yield* alertTarget(orgId)
        const pager = yield* targets.add(orgId, yield* httpTarget(orgId), "pagerduty", settings)
        for (const [channel, { id }] of [
          ["webhook", webhook],
          ["http", pager]
        ] as const) {
          const changing = targets.update(orgId, id, { oldestDueSeconds: 5, severity: null })
          yield* Effect.provideService(changing, Actor, "operator")
          yield* targets.update(orgId, id, {})
          yield* targets.update(newOrg(), id, { severity: "info" })
          const [created, ...changes] = yield* (yield* Journals).load(journalOf(channel, id))
          expect(created).toMatchObject({ name: "DestinationCreated@1" })
          expect(changes).toMatchObject([{ version: 2, name: "DestinationChanged@1", actor: "operator" }])
          expect(JSON.parse(changes[0]!.data)).toEqual({ orgId, channel, fields: ["oldestDueSeconds", "severity"] })
        }
      })
    )

    test(
      "come page by page",
      Effect.gen(function* () {
        const targets = yield* AlertTargets
        const orgId = newOrg()
        const made = [yield* alertTarget(orgId), yield* alertTarget(orgId), yield* alertTarget(orgId)]
        const first = yield* targets.list(orgId, { cursor: null, limit: 2 })
        const second = yield* targets.list(orgId, { cursor: first.nextCursor, limit: 2 })
        expect(ids([...first.items, ...second.items])).toEqual(ids(made).toSorted())
        expect(second.nextCursor).toBeNull()
      })
    )

    test(
      "are gone when their destination is",
      Effect.gen(function* () {
        const targets = yield* AlertTargets
        const orgId = newOrg()
        const webhook = yield* alertTarget(orgId)
        const pager = yield* targets.add(orgId, yield* httpTarget(orgId), "pagerduty", settings)
        yield* (yield* Endpoints).remove(orgId, webhook.id)
        expect(ids(yield* targets.all)).toEqual([pager.id])
        yield* (yield* HttpTargets).remove(orgId, pager.id)
        expect(yield* targets.all).toEqual([])
        expect(yield* targets.get(orgId, webhook.id)).toBeNull()
        expect(yield* targets.update(orgId, webhook.id, { events: ["circuit"] })).toBeNull()
        expect((yield* targets.list(orgId, { cursor: null, limit: 10 })).items).toEqual([])
      })
    )
  })

  describe(`${name} subjects of alerts`, () => {
    test(
      "are destinations of every kind, whosever they are",
      Effect.gen(function* () {
        const [acme, globex] = [newOrg(), newOrg()]
        const [a, b] = [yield* endpoint(acme), yield* httpTarget(globex)]
        const subjects = yield* (yield* AlertSubjects).among([a, b, newLane()])
        expect([...subjects.values()].toSorted((x, y) => (x.channel < y.channel ? -1 : 1))).toEqual([
          { id: b, orgId: globex, channel: "http", url: httpSettings.url, removed: false },
          { id: a, orgId: acme, channel: "webhook", url: endpointSettings.url, removed: false }
        ])
      })
    )

    test(
      "are known as removed when they were",
      Effect.gen(function* () {
        const orgId = newOrg()
        const [a, b] = [yield* endpoint(orgId), yield* httpTarget(orgId)]
        yield* (yield* Endpoints).remove(orgId, a)
        yield* (yield* HttpTargets).remove(orgId, b)
        const subjects = yield* (yield* AlertSubjects).among([a, b])
        expect(subjects.get(a)).toMatchObject({ orgId, channel: "webhook", removed: true })
        expect(subjects.get(b)).toMatchObject({ orgId, channel: "http", removed: true })
      })
    )

    test(
      "are never destinations of alerts, not even removed ones",
      Effect.gen(function* () {
        const subjects = yield* AlertSubjects
        const orgId = newOrg()
        const { id } = yield* alertTarget(orgId)
        expect([...(yield* subjects.among([id])).keys()]).toEqual([])
        yield* (yield* Endpoints).remove(orgId, id)
        expect([...(yield* subjects.among([id])).keys()]).toEqual([])
      })
    )
  })

  describe(`${name} oldest due message`, () => {
    const put = Effect.fnUntraced(function* (orgId: OrgId, destination: ReturnType<typeof newLane>, dueIn: number) {
      const step = opened({ orgId, destination, dueAt: inMillis(dueIn) })
      yield* (yield* EventStore).append([step.entry])
      return step.after.id
    })

    test(
      "is the one that is due longest in any lane of the org, and only its own",
      Effect.gen(function* () {
        const subjects = yield* AlertSubjects
        const [acme, globex, idle] = [newOrg(), newOrg(), newOrg()]
        const [a, b, c] = [yield* endpoint(acme), yield* httpTarget(acme), yield* endpoint(globex)]
        yield* put(acme, a, -60_000)
        const oldest = yield* put(acme, b, -90_000)
        yield* put(acme, b, 5_000)
        const other = yield* put(globex, c, -120_000)
        yield* put(idle, yield* endpoint(idle), 60_000)
        const found = yield* subjects.oldestDue([acme, globex, idle])
        expect([...found.keys()].toSorted()).toEqual([acme, globex].toSorted())
        expect(found.get(acme)).toMatchObject({ messageId: oldest, destination: b })
        expect(Math.abs(DateTime.toEpochMillis(found.get(acme)!.dueAt) + 90_000 - Date.now())).toBeLessThan(10_000)
        expect(found.get(globex)).toMatchObject({ messageId: other, destination: c })
        expect([...(yield* subjects.oldestDue([acme])).keys()]).toEqual([acme])
      })
    )

    test(
      "is none that was handed out, and one behind a pause all the same",
      Effect.gen(function* () {
        const subjects = yield* AlertSubjects
        const orgId = newOrg()
        const [a, b] = [yield* endpoint(orgId), yield* endpoint(orgId)]
        yield* (yield* Endpoints).setPaused(orgId, b, true)
        yield* put(orgId, a, -90_000)
        const paused = yield* put(orgId, b, -60_000)
        const request = { worker: "w", limit: 10, perLane: 10, room: new Map(), lease: Duration.minutes(1) }
        expect((yield* (yield* Queue).claim(request))!.messages).toHaveLength(1)
        expect((yield* subjects.oldestDue([orgId])).get(orgId)).toMatchObject({ messageId: paused })
      })
    )

    test(
      "is no alert",
      Effect.gen(function* () {
        const orgId = newOrg()
        const { id } = yield* alertTarget(orgId)
        yield* put(orgId, id, -90_000)
        expect((yield* (yield* AlertSubjects).oldestDue([orgId])).size).toBe(0)
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
