/** That whatever changes a destination or key says so in the log, in one transaction and with the actor behind it. */
import { createHash, randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer, Redacted, Result } from "effect"
import { Actor } from "../../../src/application/actor.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { ApiKeys } from "../../../src/application/ports/ApiKeys.ts"
import { Endpoints } from "../../../src/application/ports/Endpoints.ts"
import type { LoggedFact } from "../../../src/application/ports/EventStore.ts"
import { HttpTargets } from "../../../src/application/ports/HttpTargets.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { WhatsAppAccounts } from "../../../src/application/ports/WhatsAppAccounts.ts"
import { journalOf, journalOfKey } from "../../../src/domain/destination/changes.ts"
import { fromRecorded } from "../../../src/domain/destination/recorded.ts"
import { type ChannelName, DestinationId } from "../../../src/domain/ids.ts"
import { newOrg, readLogUntil, type StorePorts } from "../sample.ts"

const SECRET = "a secret that no fact may hold"
const secret = Redacted.make(SECRET)
const limits = { retry: null, maxInFlight: 5, timeoutMs: 1_000, onDeadLetter: "skip" } as const

const endpointSettings = {
  ...limits,
  url: "https://shop.example/hook",
  eventTypes: null,
  description: null,
  signature: "standard",
  rateLimit: null,
  headers: {}
} as const
const targetSettings = {
  ...limits,
  url: "https://psp.example",
  method: "POST",
  headers: {},
  bodyFields: {},
  idempotency: "header",
  reconcile: null,
  rateLimit: null
} as const
const accountSettings = {
  ...limits,
  graphVersion: "v25.0",
  rateLimit: { limit: 80, periodMs: 1_000 },
  verifySignature: true,
  reconcile: { waitMs: 1_000, otherwise: "deadLetter" }
} as const

export const configurationContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(Effect.provideService(body, Actor, "operator"), layer), 20_000)

  const facts = Effect.fnUntraced(function* (journal: ReturnType<typeof journalOf | typeof journalOfKey>) {
    const history = yield* (yield* Journals).load(journal)
    expect(JSON.stringify(history)).not.toContain(SECRET)
    expect(history.map(({ version }) => version)).toEqual(history.map((_, index) => index + 1))
    return history.map((row) => ({ fact: Result.getOrThrow(fromRecorded(row)), actor: row.actor }))
  })

  /** The facts of a destination as the operator left them. */
  const told = Effect.fnUntraced(function* (channel: ChannelName, id: string) {
    const all = yield* facts(journalOf(channel, id))
    expect(new Set(all.map(({ actor }) => actor))).toEqual(new Set(["operator"]))
    return all.map(({ fact: { type, orgId: _, ...fact } }) => {
      if ("channel" in fact) expect(fact.channel).toBe(channel)
      return "fields" in fact ? [type, ...fact.fields] : "names" in fact ? [type, ...fact.names] : [type]
    })
  })

  describe(`${name} facts of configuration`, () => {
    test(
      "tell each change of a webhook endpoint, and none where nothing changed",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const { id } = yield* endpoints.create(orgId, endpointSettings, secret)
        yield* endpoints.update(orgId, id, { url: "https://shop.example/new", headers: { authorization: SECRET } })
        yield* endpoints.setPaused(orgId, id, true)
        yield* endpoints.setPaused(orgId, id, true)
        yield* endpoints.setPaused(orgId, id, false)
        yield* endpoints.update(newOrg(), id, { description: "not mine" })
        yield* endpoints.setPaused(newOrg(), id, true)
        yield* endpoints.remove(newOrg(), id)
        yield* endpoints.remove(orgId, id)
        yield* endpoints.remove(orgId, id)
        expect(yield* told("webhook", id)).toEqual([
          ["DestinationCreated"],
          ["DestinationChanged", "headers", "url"],
          ["DestinationPaused"],
          ["DestinationResumed"],
          ["DestinationRemoved"]
        ])
      })
    )

    test(
      "tell each change of an HTTP target, with the names of its secrets",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const { id } = yield* targets.create(orgId, targetSettings, { apiKey: secret })
        yield* targets.update(orgId, id, { method: "PUT" }, { apiKey: null, token: secret })
        yield* targets.update(orgId, id, {}, { token: secret })
        yield* targets.update(newOrg(), id, { method: "POST" }, {})
        yield* targets.remove(orgId, id)
        yield* targets.remove(orgId, id)
        expect(yield* told("http", id)).toEqual([
          ["DestinationCreated"],
          ["DestinationChanged", "method"],
          ["DestinationSecretsChanged", "apiKey", "token"],
          ["DestinationSecretsChanged", "token"],
          ["DestinationRemoved"]
        ])
      })
    )

    test(
      "tell each change of a WhatsApp account, with the names of its secrets",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        const number = randomUUID()
        const secrets = { accessToken: secret, appSecret: secret, verifyToken: secret }
        const made = yield* accounts.create(orgId, number, accountSettings, secrets)
        const id = made === "NumberTaken" ? DestinationId.make(randomUUID()) : made.id
        expect(yield* accounts.create(orgId, number, accountSettings, secrets)).toBe("NumberTaken")
        yield* accounts.update(orgId, id, { graphVersion: "v26.0" }, { accessToken: secret })
        yield* accounts.setPaused(orgId, id, true)
        yield* accounts.setPaused(orgId, id, true)
        yield* accounts.remove(orgId, id)
        expect(yield* told("whatsapp", id)).toEqual([
          ["DestinationCreated"],
          ["DestinationChanged", "graphVersion"],
          ["DestinationSecretsChanged", "accessToken"],
          ["DestinationPaused"],
          ["DestinationRemoved"]
        ])
      })
    )

    test(
      "tell that a key was made and revoked, without the key",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const orgId = newOrg()
        const hash = createHash("sha256").update(randomUUID()).digest("hex")
        const { id } = yield* keys.create(orgId, "ci", hash)
        yield* keys.revoke(id)
        yield* keys.revoke(id)
        const all = yield* facts(journalOfKey(id))
        expect(all).toEqual([
          { fact: { type: "KeyCreated", orgId, name: "ci" }, actor: "operator" },
          { fact: { type: "KeyRevoked", orgId }, actor: "operator" }
        ])
        expect(JSON.stringify(all)).not.toContain(hash)
      })
    )

    test(
      "are all there, one behind the other, when many change the same at once",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const { id } = yield* endpoints.create(orgId, endpointSettings, secret)
        yield* Effect.all(
          Array.from({ length: 20 }, (_, n) =>
            n % 2 === 0
              ? endpoints.update(orgId, id, { description: `${n}` })
              : Effect.andThen(endpoints.setPaused(orgId, id, true), endpoints.setPaused(orgId, id, false))
          ),
          { concurrency: "unbounded", discard: true }
        )
        const types = (yield* told("webhook", id)).map(([type]) => type)
        expect(types.filter((type) => type === "DestinationChanged")).toHaveLength(10)
        // Each pause that was told is followed by its end: none was told twice.
        const turns = types.filter((type) => type === "DestinationPaused" || type === "DestinationResumed")
        expect(turns).toEqual(turns.map((_, n) => (n % 2 === 0 ? "DestinationPaused" : "DestinationResumed")))
        const ours = (facts: ReadonlyArray<LoggedFact>) =>
          facts.filter(({ stream }) => stream === journalOf("webhook", id))
        const logged = yield* readLogUntil((facts) => ours(facts).length >= types.length)
        expect(ours(logged)).toHaveLength(types.length)
      })
    )

    test(
      "say that Posthaste itself did what nobody asked for",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const { id } = yield* Effect.provideService(endpoints.create(newOrg(), endpointSettings, secret), Actor, null)
        expect((yield* facts(journalOf("webhook", id))).map(({ actor }) => actor)).toEqual([null])
      })
    )
  })
}
