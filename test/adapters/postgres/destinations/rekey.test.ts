/** Encryption keys rotate: what an older key has sealed is sealed anew, also when the run is cut off, and then opens without it. */
import { expect, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Fiber, Latch, Layer, Redacted } from "effect"
import { describe } from "vitest"
import { rekey } from "../../../../src/adapters/postgres/destinations/rekey.ts"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { makeAccount, makeEndpoint, makeTarget, webhook } from "../../../contracts/destinations/samples.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const [old, young] = [3, 9].map((byte) => Redacted.make(new Uint8Array(32).fill(byte))) as [
  Redacted.Redacted<Uint8Array>,
  Redacted.Redacted<Uint8Array>
]
const acme = OrgId.make("acme")
const ENDPOINTS = 1_200

describe("rekey", () => {
  it.live("seals all anew over two cuts, and the old key is needed no more", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const under = (encryptionKey: Redacted.Redacted<Uint8Array>, ...olderKeys: ReadonlyArray<typeof old>) =>
        PostgresPorts.layer({ url, encryptionKey, olderKeys })
      const made = yield* Effect.gen(function* () {
        const headers = { authorization: "Bearer of old" }
        const endpoints = yield* Effect.forEach(
          Array.from({ length: ENDPOINTS }, (_, n) => n),
          (n) =>
            makeEndpoint(acme, n % 100 === 0 ? { headers } : {}, { secrets: { secret: Redacted.make(`secret-${n}`) } }),
          { concurrency: 20 }
        )
        const previousUntil = DateTime.add(yield* DateTime.now, { hours: 1 })
        const rotation = { name: "secret", secret: Redacted.make("rotated"), published: {}, previousUntil }
        yield* (yield* Destinations).rotateSecret(webhook, acme, endpoints[0]!.id, rotation)
        const verifyToken = Redacted.make("to be looked up")
        const account = yield* makeAccount(acme, {}, { secrets: { accessToken: Redacted.make("a"), verifyToken } })
        const target = yield* makeTarget(acme, { headers }, { secrets: { token: Redacted.make("t") } })
        return { endpoints, account, target, verifyToken }
      }).pipe(Effect.provide(under(old)))

      const rekeying = (progress: (done: number) => Effect.Effect<void>) =>
        rekey(young, [old], progress).pipe(Effect.provide(Layer.fresh(Postgres.layer({ url }))))
      for (const cutAt of [500, 1_000]) {
        const reached = yield* Latch.make()
        const run = yield* Effect.forkChild(
          rekeying((done) => (done >= cutAt ? Effect.andThen(reached.open, Effect.never) : Effect.void))
        )
        yield* reached.await
        yield* Fiber.interrupt(run)
      }
      // In between both keys are needed, and all works with both.
      expect(Exit.isFailure(yield* Effect.exit(Layer.build(under(young))))).toBe(true)
      expect((yield* rekeying(() => Effect.void)).destinations).toBe(ENDPOINTS + 2 - 1_000)
      expect(yield* rekeying(() => Effect.void)).toEqual({ values: 0, destinations: 0 })

      yield* Effect.gen(function* () {
        const { forSending, knowsLookup } = yield* Destinations
        const opened = yield* Effect.forEach(made.endpoints, ({ id }) => forSending(acme, id))
        expect(opened.slice(1).map((one) => Redacted.value(one!.secrets["secret"]!))).toEqual(
          made.endpoints.slice(1).map((_, n) => `secret-${n + 1}`)
        )
        expect(Redacted.value(opened[0]!.secrets["secret"]!)).toBe("rotated")
        expect(opened[0]!.previousSecrets.map(({ secret }) => Redacted.value(secret))).toEqual(["secret-0"])
        expect((opened[0]!.destination.settings as { headers?: object }).headers).toEqual({
          authorization: "Bearer of old"
        })
        expect(Redacted.value((yield* forSending(acme, made.target.id))!.secrets["token"]!)).toBe("t")
        expect(yield* knowsLookup("whatsapp", made.verifyToken)).toBe(true)
        expect(yield* knowsLookup("whatsapp", Redacted.make("another"))).toBe(false)
      }).pipe(Effect.provide(under(young)))
      expect(Exit.isFailure(yield* Effect.exit(Layer.build(under(old))))).toBe(true)
    }).pipe(Effect.scoped)
  )
})
