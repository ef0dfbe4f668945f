/**
 * What every adapter of `Destinations` promises, for every kind of destination. Call it once per adapter, with a layer that
 * gives an empty store. An adapter may remember what it is asked for sending for 20 ms here.
 */
import { createHash, randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer, Redacted, Result } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { ApiKeys } from "../../../src/application/ports/ApiKeys.ts"
import type { AnyChannel } from "../../../src/application/ports/Channels.ts"
import {
  type Alerting,
  type Destination,
  Destinations,
  type OpenDestination,
  type Secrets
} from "../../../src/application/ports/Destinations.ts"
import { EventStore, type LoggedFact } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { type JournalName, Journals } from "../../../src/application/ports/Journals.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { journalOf, journalOfKey } from "../../../src/domain/destination/changes.ts"
import { fromRecorded } from "../../../src/domain/destination/facts.ts"
import type { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { asWorker } from "../deliver/claims.ts"
import { termsOf } from "../keys/terms.ts"
import { newLane, newOrg, opened, readLogUntil, type StorePorts } from "../sample.ts"
import { http, makeAccount, makeEndpoint, makeTarget, newNumber, webhook, whatsapp } from "./samples.ts"

const canary = "EAAGm0PX4ZCpsBAnobodymayseethis"

interface Kind {
  readonly channel: AnyChannel
  readonly make: (
    orgId: OrgId,
    change?: object,
    beside?: { readonly secrets?: Secrets; readonly alerting?: Alerting }
  ) => Effect.Effect<Destination, StoreUnavailable, Destinations>
  /** A secret that it has, and settings that differ from the defaults. */
  readonly secret: string
  readonly settings: object
}

const common = {
  retry: { strategy: "schedule", waitsMs: [1_000, 5_000], jitter: [0.5, 1.5] },
  rateLimit: { limit: 10, periodMs: 1_000 },
  maxInFlight: 8,
  timeoutMs: 9_000,
  onDeadLetter: "block"
} as const

const kinds: ReadonlyArray<Kind> = [
  {
    channel: webhook,
    make: makeEndpoint,
    secret: "secret",
    settings: {
      ...common,
      eventTypes: ["invoice.paid"],
      description: "the “billing” receiver",
      headers: { "x-tenant": "blue" }
    }
  },
  {
    channel: http,
    make: (orgId, change, beside) =>
      makeTarget(orgId, change, { secrets: { token: Redacted.make("ßecret") }, ...beside }),
    secret: "token",
    settings: {
      ...common,
      method: "PUT",
      headers: { authorization: "Bearer {{token}}" },
      bodyFields: { key: "{{token}}" },
      idempotency: "none",
      reconcile: { url: "https://psp.example/charges/{messageId}" }
    }
  },
  {
    channel: whatsapp,
    make: makeAccount,
    secret: "accessToken",
    settings: { ...common, graphVersion: "v26.0", verifySignature: false }
  }
]

/** An adapter may remember settings for so long. */
const untilForgotten = Effect.sleep("40 millis")

const alerting: Alerting = {
  type: "webhook",
  events: ["circuit", "oldestDue"],
  oldestDueSeconds: 60,
  severity: "critical",
  description: "the night shift"
}

export const destinationsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  /** Secrets in the open, as an attempt gets them. */
  const secretsOf = Effect.fnUntraced(function* ({ orgId, id }: Destination) {
    const open = yield* (yield* Destinations).forSending(orgId, id)
    return Object.fromEntries(Object.entries(open!.secrets).map(([key, value]) => [key, Redacted.value(value)]))
  })

  for (const { channel, make, secret, settings } of kinds) {
    describe(`${name}: ${channel.article} ${channel.noun}`, () => {
      test(
        "is given back as it was created, at version 1, its secrets by name",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const created = yield* make(orgId, settings, {
            secrets: { [secret]: Redacted.make(canary), ...lookupIn(channel) }
          })
          expect(created).toMatchObject({ settings, orgId, channel: channel.name, paused: false, version: 1 })
          expect(created.secretNames).toEqual([secret, ...Object.keys(lookupIn(channel))].toSorted())
          expect(created.updatedAt).toEqual(created.createdAt)
          expect(yield* destinations.get(orgId, created.id)).toEqual(created)
          const page = yield* destinations.list(orgId, {}, { cursor: null, limit: 1 })
          expect(JSON.stringify([created, page])).not.toContain(canary)
        })
      )

      test(
        "gives an attempt settings and secrets, and tells nothing when printed",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const created = yield* make(orgId, settings, {
            secrets: { [secret]: Redacted.make(canary), ...lookupIn(channel) }
          })
          const open = yield* destinations.forSending(orgId, created.id)
          expect(open!.destination).toEqual(created)
          expect(yield* secretsOf(created)).toMatchObject({ [secret]: canary })
          expect(JSON.stringify(open)).not.toContain(canary)
          expect(yield* destinations.forSending(orgId, newLane())).toBeNull()
        })
      )

      test(
        "shows nothing to another org, and nothing under another kind",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const [mine, yours] = [newOrg(), newOrg()]
          const { id } = yield* make(mine)
          const other = kinds.find((kind) => kind.channel !== channel)!.channel
          for (const [kind, orgId] of [
            [channel, yours],
            [other, mine]
          ] as const) {
            const change = { settings: { timeoutMs: 1_000 }, secrets: { [secret]: Redacted.make("yours") } }
            expect(yield* destinations.change(kind, orgId, id, change)).toBeNull()
            expect(yield* destinations.setPaused(kind, orgId, id, true)).toBeNull()
            expect(yield* destinations.remove(kind, orgId, id)).toBe(false)
          }
          expect(yield* destinations.get(yours, id)).toBeNull()
          expect(yield* destinations.forSending(yours, id)).toBeNull()
          const page = { cursor: null, limit: 10 }
          expect(yield* destinations.list(yours, {}, page)).toEqual({ items: [], nextCursor: null })
          expect((yield* destinations.list(mine, { channel: other.name }, page)).items).toEqual([])
          expect(yield* destinations.get(mine, id)).toMatchObject({ paused: false, version: 1 })
        })
      )

      test(
        "changes what is named, keeps the rest and counts the change",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const created = yield* make(orgId, settings)
          const given = { timeoutMs: 1_000, retry: null }
          const changed = yield* destinations.change(channel, orgId, created.id, { settings: given })
          expect(changed).toMatchObject({ settings: { ...settings, ...given }, version: 2 })
          expect(changed!.createdAt).toEqual(created.createdAt)
          expect(changed!.secretNames).toEqual(created.secretNames)
          expect(yield* destinations.get(orgId, created.id)).toEqual(changed)
          expect(yield* destinations.change(channel, orgId, newLane(), { settings: given })).toBeNull()
        })
      )

      test(
        "replaces, adds and removes the secrets that are named, and keeps the others",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const created = yield* make(orgId)
          yield* secretsOf(created)
          const added = { [secret]: Redacted.make("new"), added: Redacted.make("a") }
          const first = yield* destinations.change(channel, orgId, created.id, { secrets: added })
          expect(first).toMatchObject({ settings: created.settings, version: 2 })
          expect(first!.secretNames).toEqual([...created.secretNames, "added"].toSorted())
          yield* destinations.change(channel, orgId, created.id, { secrets: { added: null, absent: null } })
          yield* untilForgotten
          expect(yield* secretsOf(created)).toMatchObject({ [secret]: "new" })
          expect(Object.keys(yield* secretsOf(created))).not.toContain("added")
        })
      )

      test(
        "loses no change of several that are made at once",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const { id } = yield* make(orgId)
          const changes = [{ maxInFlight: 2 }, { timeoutMs: 900 }, { onDeadLetter: "block" }]
          yield* Effect.forEach(changes, (given) => destinations.change(channel, orgId, id, { settings: given }), {
            concurrency: "unbounded"
          })
          expect(yield* destinations.get(orgId, id)).toMatchObject({
            settings: Object.assign({}, ...changes),
            version: 4
          })
        })
      )

      test(
        "is listed once, page by page",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          yield* make(newOrg())
          const created = yield* Effect.forEach([1, 2, 3, 4, 5], () => make(orgId))
          const seen: Array<string> = []
          let cursor: string | null = null
          do {
            const page: Effect.Success<ReturnType<typeof destinations.list>> = yield* destinations.list(
              orgId,
              { channel: channel.name },
              { cursor, limit: 2 }
            )
            expect(page.items.length).toBeLessThanOrEqual(2)
            seen.push(...page.items.map(({ id }) => id))
            cursor = page.nextCursor
          } while (cursor !== null)
          expect(seen).toEqual(created.map(({ id }) => id).toSorted())
          expect((yield* destinations.list(orgId, {}, { cursor: null, limit: 5 })).nextCursor).toBeNull()
        })
      )

      test(
        "holds back what exceeds its rate limit or is paused, until that ends or it is gone",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const store = yield* EventStore
          const queue = yield* Queue
          const orgId = newOrg()
          const [limited, paused] = [
            yield* make(orgId, { rateLimit: { limit: 1, periodMs: 3_600_000 } }),
            yield* make(orgId)
          ]
          expect(yield* destinations.setPaused(channel, orgId, paused.id, true)).toMatchObject({
            paused: true,
            version: 1
          })
          const steps = [limited, limited, limited, paused, paused].map(({ id }) =>
            opened({ channel: channel.name, destination: id })
          )
          yield* store.append(steps.map(({ entry }) => entry))
          const claim = Effect.gen(function* () {
            const request = asWorker("w")
            const claimed = (yield* queue.claim(request))?.messages ?? []
            return [limited, paused].map(({ id }) => claimed.filter(({ lane }) => lane === id).length)
          })
          expect(yield* claim).toEqual([1, 0])
          yield* destinations.setPaused(channel, orgId, paused.id, false)
          expect(yield* claim).toEqual([0, 2])
          yield* destinations.remove(channel, orgId, limited.id)
          expect(yield* claim).toEqual([2, 0])
        })
      )

      test(
        "hands out nothing of an org that is full, unless room is named for it",
        Effect.gen(function* () {
          const store = yield* EventStore
          const queue = yield* Queue
          const [org, other] = [newOrg(), newOrg()]
          const lanes = [yield* make(org), yield* make(org), yield* make(other)].map(({ id }) => id)
          const steps = lanes.map((destination, n) =>
            opened({ orgId: n < 2 ? org : other, channel: channel.name, destination })
          )
          yield* store.append(steps.map(({ entry }) => entry))
          const claim = (room: ReadonlyArray<readonly [DestinationId, number]>) =>
            Effect.map(
              queue.claim({ ...asWorker("w"), room: new Map(room), fullOrgs: new Set([org]) }),
              (claimed) => claimed?.messages.map(({ lane }) => lanes.indexOf(lane)) ?? []
            )
          expect(yield* claim([[lanes[0]!, 0]])).toEqual([2])
          expect(yield* claim([[lanes[1]!, 1]])).toEqual([1])
          expect(yield* claim([])).toEqual([])
          expect((yield* queue.claim(asWorker("w")))!.messages.map(({ lane }) => lane)).toEqual([lanes[0]])
        })
      )

      test(
        "is disabled once, hands out nothing, and hands out all when it is enabled and not paused",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const store = yield* EventStore
          const queue = yield* Queue
          const orgId = newOrg()
          const { id } = yield* make(orgId)
          const disable = (reason: string | null) => destinations.setDisabled(channel, orgId, id, reason)
          expect(yield* disable(null)).toMatchObject({ disabledReason: null, enabledAt: null })
          expect(yield* disable("gone")).toMatchObject({ disabledReason: "gone", paused: false, enabledAt: null })
          expect(yield* disable("again")).toMatchObject({ disabledReason: "gone" })
          expect(yield* destinations.get(orgId, id)).toMatchObject({ disabledReason: "gone" })
          expect(yield* destinations.setDisabled(channel, newOrg(), id, null)).toBeNull()
          yield* store.append([opened({ channel: channel.name, destination: id }).entry])
          const claim = Effect.gen(function* () {
            const request = asWorker("w")
            return ((yield* queue.claim(request))?.messages ?? []).filter(({ lane }) => lane === id).length
          })
          yield* destinations.setPaused(channel, orgId, id, true)
          yield* destinations.setPaused(channel, orgId, id, false)
          expect(yield* claim).toBe(0)
          yield* destinations.setPaused(channel, orgId, id, true)
          const enabled = yield* disable(null)
          expect(enabled).toMatchObject({ disabledReason: null, paused: true })
          expect(enabled!.enabledAt).toEqual(enabled!.updatedAt)
          expect(yield* claim).toBe(0)
          yield* destinations.setPaused(channel, orgId, id, false)
          expect(yield* claim).toBe(1)
          expect((yield* told(channel, id)).map(([type]) => type)).toEqual([
            "DestinationCreated",
            "DestinationDisabled",
            "DestinationPaused",
            "DestinationResumed",
            "DestinationPaused",
            "DestinationEnabled",
            "DestinationResumed"
          ])
        }).pipe(Effect.provideService(CommandedBy, "operator"))
      )

      test(
        "applies a change to attempts, also where another process made it",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const { id } = yield* make(orgId)
          yield* destinations.forSending(orgId, id)
          yield* destinations.change(channel, orgId, id, { settings: { timeoutMs: 777 } })
          yield* untilForgotten
          expect((yield* destinations.forSending(orgId, id))!.destination).toMatchObject({
            settings: { timeoutMs: 777 },
            version: 2
          })
        })
      )

      test(
        "is forgotten when it is removed, with its secrets",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const { id } = yield* make(orgId)
          yield* destinations.forSending(orgId, id)
          yield* destinations.named(orgId, channel.name, null)
          expect(yield* destinations.remove(channel, orgId, id)).toBe(true)
          expect(yield* destinations.remove(channel, orgId, id)).toBe(false)
          expect(yield* destinations.get(orgId, id)).toBeNull()
          expect(yield* destinations.change(channel, orgId, id, {})).toBeNull()
          expect(yield* destinations.setPaused(channel, orgId, id, true)).toBeNull()
          expect((yield* destinations.list(orgId, {}, { cursor: null, limit: 10 })).items).toEqual([])
          yield* untilForgotten
          expect(yield* destinations.forSending(orgId, id)).toBeNull()
          expect(yield* destinations.named(orgId, channel.name, null)).toEqual([])
          expect((yield* destinations.among([id])).get(id)).toMatchObject({
            orgId,
            channel: channel.name,
            removed: true
          })
        })
      )

      test(
        "is named by nobody, when it is the only one, and by no more than two",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const [none, one, several] = [newOrg(), newOrg(), newOrg()]
          const only = yield* make(one)
          yield* Effect.forEach([1, 2, 3], () => make(several))
          const named = (orgId: OrgId) =>
            Effect.map(destinations.named(orgId, channel.name, null), (found) => found.map(({ id }) => id))
          expect(yield* named(none)).toEqual([])
          expect(yield* named(one)).toEqual([only.id])
          expect(yield* named(several)).toHaveLength(2)
        })
      )

      test(
        "tells each change in its journal, by whom, and none where nothing changed",
        Effect.gen(function* () {
          const destinations = yield* Destinations
          const orgId = newOrg()
          const beside = { secrets: { [secret]: Redacted.make(canary), ...lookupIn(channel) } }
          const { id } = yield* make(orgId, {}, beside)
          const change = (given: object) => destinations.change(channel, orgId, id, given)
          yield* change({
            settings: { timeoutMs: 1_000, maxInFlight: 2 },
            secrets: { [secret]: Redacted.make(canary) }
          })
          yield* change({ secrets: { [secret]: Redacted.make(canary) } })
          yield* change({})
          for (const paused of [true, true, false]) yield* destinations.setPaused(channel, orgId, id, paused)
          yield* destinations.change(channel, newOrg(), id, { settings: { timeoutMs: 1 } })
          yield* destinations.remove(channel, newOrg(), id)
          for (const _ of [1, 2]) yield* destinations.remove(channel, orgId, id)
          expect(yield* told(channel, id)).toEqual([
            ["DestinationCreated"],
            ["DestinationChanged", "maxInFlight", "timeoutMs"],
            ["DestinationSecretsChanged", secret],
            ["DestinationSecretsChanged", secret],
            ["DestinationPaused"],
            ["DestinationResumed"],
            ["DestinationRemoved"]
          ])
        }).pipe(Effect.provideService(CommandedBy, "operator"))
      )
    })
  }

  describe(`${name}: a secret that is rotated`, () => {
    const inMillis = (ms: number) => Effect.map(DateTime.now, (now) => DateTime.add(now, { milliseconds: ms }))
    const HOUR = 3_600_000
    const endpoint = Effect.fnUntraced(function* () {
      const orgId = newOrg()
      const { id } = yield* makeEndpoint(orgId, {}, { secrets: { secret: Redacted.make("first") } })
      const rotate = Effect.fnUntraced(function* (secret: string, graceMs: number) {
        const rotation = {
          name: "secret",
          secret: Redacted.make(secret),
          published: {},
          previousUntil: yield* inMillis(graceMs)
        }
        return yield* (yield* Destinations).rotateSecret(webhook, orgId, id, rotation)
      })
      return { orgId, id, rotate }
    })
    const texts = (open: OpenDestination | null) => [
      Redacted.value(open!.secrets["secret"]!),
      ...open!.previousSecrets.map(({ secret }) => Redacted.value(secret))
    ]

    test(
      "is given to an attempt with the one before it, as one version of the destination",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const { orgId, id, rotate } = yield* endpoint()
        yield* destinations.forSending(orgId, id)
        const until = yield* inMillis(HOUR)
        const rotated = yield* rotate("second", HOUR)
        expect(texts(rotated)).toEqual(["second", "first"])
        expect(rotated!.destination).toMatchObject({ version: 2, secretNames: ["secret"] })
        expect(rotated!.previousSecrets[0]!.name).toBe("secret")
        const ends = DateTime.toEpochMillis(rotated!.previousSecrets[0]!.until) - DateTime.toEpochMillis(until)
        expect(ends).toBeGreaterThanOrEqual(0)
        expect(ends).toBeLessThan(60_000)
        yield* untilForgotten
        expect(yield* destinations.forSending(orgId, id)).toEqual(rotated)
        expect(JSON.stringify(rotated)).not.toContain("first")
      })
    )

    test(
      "publishes what its rotation says, in the place of what was",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const { orgId, id } = yield* endpoint()
        const rotate = Effect.fnUntraced(function* (published: Readonly<Record<string, string>>) {
          const secret = Redacted.make("next")
          const rotation = { name: "secret", secret, published, previousUntil: yield* inMillis(HOUR) }
          return yield* destinations.rotateSecret(webhook, orgId, id, rotation)
        })
        expect((yield* destinations.get(orgId, id))!.published).toEqual({})
        yield* rotate({ publicKey: "one" })
        expect((yield* rotate({ publicKey: "two" }))!.destination.published).toEqual({ publicKey: "two" })
        expect((yield* destinations.get(orgId, id))!.published).toEqual({ publicKey: "two" })
      })
    )

    test(
      "leaves the newest two before it, none of them good for longer than the last rotation said",
      Effect.gen(function* () {
        const { rotate } = yield* endpoint()
        yield* rotate("second", 2 * HOUR)
        yield* rotate("third", HOUR)
        const third = yield* rotate("fourth", 3 * HOUR)
        expect(texts(third)).toEqual(["fourth", "third", "second"])
        const [newest, older] = third!.previousSecrets.map(({ until }) => DateTime.toEpochMillis(until))
        expect(newest! - older!).toBeGreaterThan(2 * HOUR - 5_000)
        expect(texts(yield* rotate("fifth", 0))).toEqual(["fifth"])
      })
    )

    test(
      "is forgotten by the first rotation, change or showing after its grace, and no sooner",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const show = ({ orgId, id }: { readonly orgId: OrgId; readonly id: DestinationId }) =>
          destinations.showSecret(webhook, orgId, id, "secret")
        const [rotated, changed, shown] = [yield* endpoint(), yield* endpoint(), yield* endpoint()]
        for (const { rotate } of [rotated, changed, shown]) {
          yield* rotate("second", HOUR)
          yield* rotate("third", 3_000)
        }
        expect(texts(yield* show(shown))).toEqual(["third", "second", "first"])
        yield* Effect.sleep("3100 millis")
        expect(texts(yield* rotated.rotate("fourth", HOUR))).toEqual(["fourth", "third"])
        yield* destinations.change(webhook, changed.orgId, changed.id, { settings: { timeoutMs: 1_000 } })
        yield* untilForgotten
        expect(texts(yield* destinations.forSending(changed.orgId, changed.id))).toEqual(["third"])
        expect(texts(yield* show(shown))).toEqual(["third"])
        expect((yield* show(shown))!.destination.version).toBe(3)
      })
    )

    test(
      "is gone at once when it is replaced by a change, and with its destination",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const { orgId, id, rotate } = yield* endpoint()
        yield* rotate("second", HOUR)
        yield* destinations.change(webhook, orgId, id, { secrets: { other: Redacted.make("o") } })
        yield* untilForgotten
        expect(texts(yield* destinations.forSending(orgId, id))).toEqual(["second", "first"])
        yield* destinations.change(webhook, orgId, id, { secrets: { secret: Redacted.make("third") } })
        yield* untilForgotten
        expect(texts(yield* destinations.forSending(orgId, id))).toEqual(["third"])
        yield* destinations.remove(webhook, orgId, id)
        expect(yield* rotate("fourth", HOUR)).toBeNull()
        expect(yield* destinations.showSecret(webhook, orgId, id, "secret")).toBeNull()
      })
    )

    test(
      "loses none of the newest when several rotate it at once",
      Effect.gen(function* () {
        const { orgId, id, rotate } = yield* endpoint()
        const names = ["a", "b", "c", "d", "e", "f"]
        yield* Effect.forEach(names, (each) => rotate(each, HOUR), { concurrency: "unbounded" })
        yield* untilForgotten
        const open = yield* (yield* Destinations).forSending(orgId, id)
        expect(open!.destination.version).toBe(7)
        expect(new Set(texts(open)).size).toBe(3)
        expect(names).toEqual(expect.arrayContaining(texts(open)))
      })
    )

    test(
      "belongs to its org and its kind, and its journal tells what was done, by whom and until when",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const { orgId, id, rotate } = yield* endpoint()
        const rotation = {
          name: "secret",
          secret: Redacted.make(canary),
          published: {},
          previousUntil: yield* inMillis(HOUR)
        }
        for (const [kind, org] of [
          [webhook, newOrg()],
          [http, orgId]
        ] as const) {
          expect(yield* destinations.rotateSecret(kind, org, id, rotation)).toBeNull()
          expect(yield* destinations.showSecret(kind, org, id, "secret")).toBeNull()
        }
        yield* rotate(canary, HOUR)
        const { previousUntil } = rotation
        yield* destinations.rotateSecret(webhook, orgId, id, rotation)
        yield* destinations.showSecret(webhook, orgId, id, "secret")
        const of = { orgId, channel: "webhook", name: "secret" }
        expect((yield* facts(journalOf(webhook, id))).slice(2)).toEqual([
          { fact: { type: "DestinationSecretRotated", ...of, previousUntil }, actor: "operator" },
          { fact: { type: "DestinationSecretShown", ...of }, actor: "operator" }
        ])
      }).pipe(Effect.provideService(CommandedBy, "operator"))
    )
  })

  const facts = Effect.fnUntraced(function* (journal: JournalName) {
    const history = yield* (yield* Journals).load(journal)
    expect(JSON.stringify(history)).not.toContain(canary)
    expect(history.map(({ version }) => version)).toEqual(history.map((_, index) => index + 1))
    return history.map((row) => ({ fact: Result.getOrThrow(fromRecorded(row)), actor: row.actor }))
  })

  /** The facts of a destination as the operator left them. */
  const told = Effect.fnUntraced(function* (channel: AnyChannel, id: string) {
    const all = yield* facts(journalOf(channel, id))
    expect(new Set(all.map(({ actor }) => actor))).toEqual(new Set(["operator"]))
    return all.map(({ fact: { type, orgId: _, ...fact } }) => {
      if ("channel" in fact) expect(fact.channel).toBe(channel.name)
      return "fields" in fact ? [type, ...fact.fields] : "names" in fact ? [type, ...fact.names] : [type]
    })
  })

  describe(`${name}: a public key`, () => {
    const create = Effect.fnUntraced(function* (orgId: OrgId, publicKey: string, kind: AnyChannel = whatsapp) {
      const { settings } = yield* makeAccount(newOrg())
      const made = { settings, secrets: {}, published: {}, publicKey, lookup: null, alerting: null, call: null }
      return yield* (yield* Destinations).create(kind, orgId, made)
    })

    test(
      "belongs to one destination over all orgs, also when two ask at once, and again once that is gone",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const key = newNumber()
        const orgs = [newOrg(), newOrg(), newOrg()]
        const answers = yield* Effect.forEach(orgs, (orgId) => create(orgId, key), { concurrency: "unbounded" })
        expect(answers.filter((answer) => answer === "Taken")).toHaveLength(2)
        // Of another channel it is another key.
        expect(yield* create(orgs[0]!, key, http)).not.toBe("Taken")
        const winner = answers.find((answer) => answer !== "Taken")!
        expect((yield* destinations.withPublicKeys("whatsapp", [newNumber(), key])).get(key)!.destination.id).toBe(
          winner.id
        )
        yield* destinations.remove(whatsapp, winner.orgId, winner.id)
        const heir = (yield* create(orgs[1]!, key)) as Destination
        yield* untilForgotten
        expect((yield* destinations.withPublicKeys("whatsapp", [newNumber(), key])).get(key)!.destination.id).toBe(
          heir.id
        )
        expect(yield* destinations.withPublicKeys("whatsapp", [newNumber()])).toEqual(new Map())
      })
    )

    test(
      "names a destination within its org",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const [mine, yours] = [newOrg(), newOrg()]
        const [key, other] = [newNumber(), newNumber()]
        const made = (yield* create(mine, key)) as Destination
        yield* create(mine, other)
        const named = (orgId: OrgId, publicKey: string) =>
          Effect.map(destinations.named(orgId, "whatsapp", publicKey), (found) => found.map(({ id }) => id))
        expect(yield* named(mine, key)).toEqual([made.id])
        expect(yield* named(mine, "1' or true --")).toEqual([])
        expect(yield* named(yours, key)).toEqual([])
      })
    )
  })

  describe(`${name}: destinations`, () => {
    test(
      "are known by their lookup secret while one has it",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const { id } = yield* makeAccount(orgId, {}, { secrets: { verifyToken: Redacted.make("first token") } })
        const knows = (token: string) => destinations.knowsLookup("whatsapp", Redacted.make(token))
        expect([yield* knows("first token"), yield* knows("first toke"), yield* knows("")]).toEqual([
          true,
          false,
          false
        ])
        expect(yield* destinations.knowsLookup("webhook", Redacted.make("first token"))).toBe(false)
        yield* destinations.change(whatsapp, orgId, id, { lookup: Redacted.make("second token") })
        expect([yield* knows("first token"), yield* knows("second token")]).toEqual([false, true])
        yield* destinations.remove(whatsapp, orgId, id)
        expect(yield* knows("second token")).toBe(false)
      })
    )

    test(
      "are found by a setting, over all orgs",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const unverified = () => makeAccount(newOrg(), { verifySignature: false })
        const [one, other, removed] = [yield* unverified(), yield* unverified(), yield* unverified()]
        yield* makeAccount(newOrg())
        yield* destinations.remove(whatsapp, removed.orgId, removed.id)
        const ids = Effect.map(destinations.matching("whatsapp", { verifySignature: false }), (found) =>
          found.map(({ id }) => id)
        )
        expect(yield* ids).toEqual([one.id, other.id].toSorted())
        yield* destinations.change(whatsapp, one.orgId, one.id, { settings: { verifySignature: true } })
        expect(yield* ids).toEqual([other.id])
      })
    )

    test(
      "are listed together, whatever their kinds",
      Effect.gen(function* () {
        const orgId = newOrg()
        const made = yield* Effect.forEach(kinds, ({ make }) => make(orgId))
        const { items } = yield* (yield* Destinations).list(orgId, {}, { cursor: null, limit: 10 })
        expect(items.map(({ id }) => id)).toEqual(made.map(({ id }) => id).toSorted())
      })
    )

    test(
      "tell how they are called, and by whom that was changed from which version on",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const called = (url: string) => ({ method: "POST", url, headers: { "webhook-id": "{messageId}" } })
        const [first, second] = [called("https://one.example/a"), called("https://two.example/b")]
        const { settings } = yield* makeEndpoint(newOrg())
        const made = {
          settings,
          secrets: {},
          published: {},
          publicKey: null,
          lookup: null,
          alerting: null,
          call: first
        }
        const { id } = (yield* destinations.create(webhook, orgId, made)) as Destination
        const change = (of: number, before: typeof first, after: typeof first) =>
          destinations.change(webhook, orgId, id, { of, settings: { timeoutMs: 1_000 + of }, call: { before, after } })
        expect(yield* change(1, first, first)).toMatchObject({ version: 2 })
        // Whoever judged an earlier version has to look again.
        expect(yield* change(1, first, second)).toBeNull()
        expect(yield* change(2, first, second)).toMatchObject({ version: 3, settings: { timeoutMs: 1_002 } })
        const addressed = (yield* facts(journalOf(webhook, id))).flatMap(({ fact }) =>
          fact.type === "DestinationAddressed" ? [fact] : []
        )
        expect(addressed.map(({ version, call, urlBefore }) => [version, call, urlBefore])).toEqual([
          [1, first, null],
          [3, second, "https://one.example/a"]
        ])
      })
    )

    test(
      "tell who changed what when many change one at once",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        const set = (paused: boolean) => destinations.setPaused(webhook, orgId, id, paused)
        yield* Effect.all(
          Array.from({ length: 20 }, (_, n) =>
            n % 2 === 0
              ? destinations.change(webhook, orgId, id, { settings: { description: `${n}` } })
              : Effect.andThen(set(true), set(false))
          ),
          { concurrency: "unbounded", discard: true }
        )
        const types = (yield* told(webhook, id)).map(([type]) => type)
        expect(types.filter((type) => type === "DestinationChanged")).toHaveLength(10)
        // Each pause that was told is followed by its end: none was told twice.
        const turns = types.filter((type) => type === "DestinationPaused" || type === "DestinationResumed")
        expect(turns).toEqual(turns.map((_, n) => (n % 2 === 0 ? "DestinationPaused" : "DestinationResumed")))
        const ours = (logged: ReadonlyArray<LoggedFact>) =>
          logged.filter(({ stream }) => stream === journalOf(webhook, id))
        const logged = yield* readLogUntil((all) => ours(all).length >= types.length)
        expect(ours(logged)).toHaveLength(types.length)
      }).pipe(Effect.provideService(CommandedBy, "operator"))
    )

    test(
      "say that Posthaste itself did what nobody asked for",
      Effect.gen(function* () {
        const { id } = yield* Effect.provideService(makeEndpoint(newOrg()), CommandedBy, null)
        expect((yield* facts(journalOf(webhook, id))).map(({ actor }) => actor)).toEqual([null])
      })
    )
  })

  describe(`${name}: an alert target`, () => {
    test(
      "is a destination that says what it wants to be told, in its org and among all",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const [acme, globex] = [newOrg(), newOrg()]
        const page = { cursor: null, limit: 10 }
        const pager = yield* makeTarget(acme, {}, { alerting: { ...alerting, type: "pagerduty" } })
        yield* makeTarget(acme)
        const other = yield* makeEndpoint(globex, {}, { alerting })
        expect(pager.alerting).toEqual({ ...alerting, type: "pagerduty" })
        expect((yield* destinations.alertTargets).map(({ id }) => id)).toEqual([pager.id, other.id].toSorted())
        expect((yield* destinations.list(globex, { alerting: true }, page)).items).toEqual([other])
        yield* destinations.remove(http, acme, pager.id)
        expect((yield* destinations.alertTargets).map(({ id }) => id)).toEqual([other.id])
        expect((yield* destinations.among([pager.id])).get(pager.id)!.alerting).not.toBeNull()
      })
    )

    test(
      "changes only what was named, and tells it as a change of the destination",
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const orgId = newOrg()
        const before = yield* makeEndpoint(orgId, {}, { alerting })
        yield* Effect.sleep("5 millis")
        const change = {
          settings: { url: "https://new.example" },
          alerting: { oldestDueSeconds: null, severity: null }
        }
        const after = yield* destinations.change(webhook, orgId, before.id, change)
        expect(after!.alerting).toEqual({ ...alerting, oldestDueSeconds: null, severity: null })
        expect(DateTime.isGreaterThan(after!.updatedAt, before.updatedAt)).toBe(true)
        expect((yield* told(webhook, before.id)).at(-1)).toEqual([
          "DestinationChanged",
          "oldestDueSeconds",
          "severity",
          "url"
        ])
      }).pipe(Effect.provideService(CommandedBy, "operator"))
    )

    test(
      "can't be made of an ordinary destination by a change",
      Effect.gen(function* () {
        const { orgId, id } = yield* makeEndpoint(newOrg())
        const after = yield* (yield* Destinations).change(webhook, orgId, id, { alerting: { severity: "info" } })
        expect(after!.alerting).toBeNull()
      })
    )
  })

  describe(`${name}: a key`, () => {
    test(
      "is told as made and revoked, without the key",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const orgId = newOrg()
        const hash = createHash("sha256").update(randomUUID()).digest("hex")
        const { id } = yield* keys.create(orgId, termsOf("ci"), hash)
        yield* keys.revoke(id, null)
        yield* keys.revoke(id, null)
        const all = yield* facts(journalOfKey(id))
        expect(all).toEqual([
          {
            fact: { type: "KeyCreated", orgId, name: "ci", scopes: null, expiresAt: null, networks: null, limits: {} },
            actor: "operator"
          },
          { fact: { type: "KeyRevoked", orgId }, actor: "operator" }
        ])
        expect(JSON.stringify(all)).not.toContain(hash)
      }).pipe(Effect.provideService(CommandedBy, "operator"))
    )
  })
}

const lookupIn = ({ secrets }: AnyChannel): Secrets =>
  Object.fromEntries(
    Object.keys(secrets)
      .filter((name) => secrets[name]!.lookup)
      .map((name) => [name, Redacted.make("hub")])
  )
