/** What every adapter of `WhatsAppAccounts` promises. Call it once per adapter, with a layer that gives an empty store. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer, Redacted } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import {
  type WhatsAppAccount,
  type WhatsAppAccountSettings,
  WhatsAppAccounts
} from "../../../src/application/ports/WhatsAppAccounts.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { newLane, newOrg, opened, type StorePorts } from "../sample.ts"

const settings: WhatsAppAccountSettings = {
  graphVersion: "v25.0",
  retry: { strategy: "schedule", waitsMs: [1_000, 5_000] },
  rateLimit: { limit: 80, periodMs: 1_000 },
  maxInFlight: 8,
  timeoutMs: 15_000,
  onDeadLetter: "skip",
  verifySignature: true,
  reconcile: { waitMs: 60_000, otherwise: "deadLetter" }
}
const canary = "EAAGm0PX4ZCpsBAnobodymayseethis"
const secretsOf = (verifyToken = "hub") => ({
  accessToken: Redacted.make(canary),
  appSecret: Redacted.make(`${canary}-app`),
  verifyToken: Redacted.make(verifyToken)
})
const newNumber = () => String(BigInt(`0x${randomUUID().replaceAll("-", "").slice(0, 12)}`))

/** A change applies from the next attempt: an adapter may remember settings for a second. */
const untilForgotten = Effect.sleep("1200 millis")

export const whatsAppAccountsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  const create = Effect.fnUntraced(function* (orgId: OrgId, phoneNumberId = newNumber(), verifyToken = "hub") {
    const account = yield* (yield* WhatsAppAccounts).create(orgId, phoneNumberId, settings, secretsOf(verifyToken))
    return account as WhatsAppAccount
  })

  describe(`${name} WhatsApp accounts`, () => {
    test(
      "gives back an account as it was created, at version 1, and no secret of it",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        const phoneNumberId = newNumber()
        const created = yield* create(orgId, phoneNumberId)
        expect(created).toMatchObject({ ...settings, orgId, phoneNumberId, paused: false, version: 1 })
        expect(created.updatedAt).toEqual(created.createdAt)
        expect(Math.abs(DateTime.toEpochMillis(created.createdAt) - Date.now())).toBeLessThan(10_000)
        expect(yield* accounts.get(orgId, created.id)).toEqual(created)
        const page = yield* accounts.list(orgId, { cursor: null, limit: 1 })
        expect(JSON.stringify([created, page])).not.toContain(canary)
      })
    )

    test(
      "tells which accounts, of any org, believe receipts that nothing proves",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const [one, other, removed] = [yield* create(newOrg()), yield* create(newOrg()), yield* create(newOrg())]
        yield* create(newOrg())
        const ids = Effect.map(accounts.unverified, (found) => found.map(({ id }) => id).toSorted())
        expect(yield* ids).toEqual([])
        for (const { orgId, id } of [one, other, removed])
          yield* accounts.update(orgId, id, { verifySignature: false }, {})
        yield* accounts.remove(removed.orgId, removed.id)
        expect(yield* ids).toEqual([one.id, other.id].toSorted())
        yield* accounts.update(one.orgId, one.id, { verifySignature: true }, {})
        expect(yield* ids).toEqual([other.id])
      })
    )

    test(
      "gives an attempt the access token and a receipt the app secret, and tells nothing when printed",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        const created = yield* create(orgId)
        const calling = yield* accounts.calling(orgId, created.id)
        expect(calling!.account).toEqual(created)
        expect(Redacted.value(calling!.accessToken)).toBe(canary)
        const receiving = yield* accounts.receiving(created.phoneNumberId)
        expect(receiving!.account).toEqual(created)
        expect(Redacted.value(receiving!.appSecret)).toBe(`${canary}-app`)
        expect(JSON.stringify([calling, receiving])).not.toContain(canary)
        expect(yield* accounts.calling(orgId, newLane())).toBeNull()
        expect(yield* accounts.receiving(newNumber())).toBeNull()
      })
    )

    test(
      "gives a phone number to one account over all orgs, also when two ask at once, and again once that is gone",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const phoneNumberId = newNumber()
        const orgs = [newOrg(), newOrg(), newOrg()]
        const answers = yield* Effect.forEach(
          orgs,
          (orgId) => accounts.create(orgId, phoneNumberId, settings, secretsOf()),
          { concurrency: "unbounded" }
        )
        expect(answers.filter((answer) => answer === "NumberTaken")).toHaveLength(2)
        const winner = answers.find((answer) => answer !== "NumberTaken")!
        yield* accounts.remove(winner.orgId, winner.id)
        const heir = yield* create(orgs[1]!, phoneNumberId)
        expect(heir.id).not.toBe(winner.id)
        expect((yield* accounts.receiving(phoneNumberId))!.account.id).toBe(heir.id)
      })
    )

    test(
      "names the only account, or the one that is meant by its id or its number, and never more than two",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const [none, one, several] = [newOrg(), newOrg(), newOrg()]
        const [only, first, second] = [yield* create(one), yield* create(several), yield* create(several)]
        yield* create(several)
        const named = (orgId: OrgId, from: string | null) =>
          Effect.map(accounts.named(orgId, from), (found) => found.map(({ id }) => id))
        expect(yield* named(none, null)).toEqual([])
        expect(yield* named(one, null)).toEqual([only.id])
        expect(yield* named(several, null)).toHaveLength(2)
        expect(yield* named(several, first.id)).toEqual([first.id])
        expect(yield* named(several, second.phoneNumberId)).toEqual([second.id])
        expect(yield* named(several, "1' or true --")).toEqual([])
        expect(yield* named(one, second.id)).toEqual([])
        expect(yield* named(one, second.phoneNumberId)).toEqual([])
      })
    )

    test(
      "knows a verify token while some account has it",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        const { id } = yield* create(orgId, newNumber(), "first token")
        const knows = (token: string) => accounts.knowsVerifyToken(Redacted.make(token))
        expect([yield* knows("first token"), yield* knows("first toke"), yield* knows("")]).toEqual([
          true,
          false,
          false
        ])
        yield* accounts.update(orgId, id, {}, { verifyToken: Redacted.make("second token") })
        expect([yield* knows("first token"), yield* knows("second token")]).toEqual([false, true])
        yield* accounts.remove(orgId, id)
        expect(yield* knows("second token")).toBe(false)
      })
    )

    test(
      "shows nothing of one org to another",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const [mine, yours] = [newOrg(), newOrg()]
        const { id } = yield* create(mine)
        expect(yield* accounts.get(yours, id)).toBeNull()
        expect(yield* accounts.update(yours, id, { maxInFlight: 1 }, secretsOf("yours"))).toBeNull()
        expect(yield* accounts.setPaused(yours, id, true)).toBeNull()
        expect(yield* accounts.remove(yours, id)).toBe(false)
        expect(yield* accounts.calling(yours, id)).toBeNull()
        expect(yield* accounts.list(yours, { cursor: null, limit: 10 })).toEqual({ items: [], nextCursor: null })
        expect(yield* accounts.get(mine, id)).toMatchObject({ ...settings, paused: false, version: 1 })
      })
    )

    test(
      "changes what is named, rotates the secrets that are named, keeps the rest and counts the change",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        const created = yield* create(orgId)
        const changed = yield* accounts.update(
          orgId,
          created.id,
          { graphVersion: "v26.0", retry: null },
          { accessToken: Redacted.make("rotated") }
        )
        expect(changed).toMatchObject({ ...settings, graphVersion: "v26.0", retry: null, version: 2 })
        expect(changed!.createdAt).toEqual(created.createdAt)
        expect(yield* accounts.get(orgId, created.id)).toEqual(changed)
        expect(Redacted.value((yield* accounts.calling(orgId, created.id))!.accessToken)).toBe("rotated")
        expect(Redacted.value((yield* accounts.receiving(created.phoneNumberId))!.appSecret)).toBe(`${canary}-app`)
        expect(yield* accounts.update(orgId, newLane(), {}, {})).toBeNull()
      })
    )

    test(
      "lists each account of the org once, page by page",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        yield* create(newOrg())
        const created = yield* Effect.forEach([1, 2, 3, 4, 5], () => create(orgId))
        const seen: Array<string> = []
        let cursor: string | null = null
        do {
          const page: Effect.Success<ReturnType<typeof accounts.list>> = yield* accounts.list(orgId, {
            cursor,
            limit: 2
          })
          expect(page.items.length).toBeLessThanOrEqual(2)
          seen.push(...page.items.map(({ id }) => id))
          cursor = page.nextCursor
        } while (cursor !== null)
        expect(seen.toSorted()).toEqual(created.map(({ id }) => id).toSorted())
        expect((yield* accounts.list(orgId, { cursor: null, limit: 5 })).nextCursor).toBeNull()
      })
    )

    test(
      "holds back what exceeds the rate limit or is paused, until it is resumed or the account is gone",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const store = yield* EventStore
        const queue = yield* Queue
        const orgId = newOrg()
        const [limited, paused] = [yield* create(orgId), yield* create(orgId)]
        yield* accounts.update(orgId, limited.id, { rateLimit: { limit: 1, periodMs: 3_600_000 } }, {})
        expect(yield* accounts.setPaused(orgId, paused.id, true)).toMatchObject({ paused: true, version: 1 })
        const steps = [limited, limited, limited, paused, paused].map(({ id }) =>
          opened({ channel: "whatsapp", destination: id })
        )
        yield* store.append(steps.map(({ entry }) => entry))
        const claim = Effect.gen(function* () {
          const request = { worker: "w", limit: 100, perLane: 100, room: new Map(), lease: Duration.minutes(1) }
          const claimed = (yield* queue.claim(request))?.messages ?? []
          return [limited, paused].map(({ id }) => claimed.filter(({ lane }) => lane === id).length)
        })
        expect(yield* claim).toEqual([1, 0])
        yield* accounts.setPaused(orgId, paused.id, false)
        expect(yield* claim).toEqual([0, 2])
        yield* accounts.remove(orgId, limited.id)
        expect(yield* claim).toEqual([2, 0])
      })
    )

    test(
      "forgets an account that was removed",
      Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const orgId = newOrg()
        const { id, phoneNumberId } = yield* create(orgId)
        yield* accounts.calling(orgId, id)
        yield* accounts.named(orgId, null)
        yield* accounts.receiving(phoneNumberId)
        expect(yield* accounts.remove(orgId, id)).toBe(true)
        expect(yield* accounts.remove(orgId, id)).toBe(false)
        expect(yield* accounts.get(orgId, id)).toBeNull()
        expect(yield* accounts.update(orgId, id, {}, {})).toBeNull()
        expect(yield* accounts.setPaused(orgId, id, true)).toBeNull()
        yield* untilForgotten
        expect(yield* accounts.calling(orgId, id)).toBeNull()
        expect(yield* accounts.named(orgId, null)).toEqual([])
        expect(yield* accounts.receiving(phoneNumberId)).toBeNull()
      })
    )
  })
}
