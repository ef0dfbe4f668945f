/** Encryption keys rotate: what an older key has sealed is sealed anew, also when the run is cut off, and then opens without it. */
import { expect, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Fiber, Latch, Layer, Redacted } from "effect"
import pg from "pg"
import { describe } from "vitest"
import { rekey } from "../../../../src/adapters/postgres/destinations/rekey.ts"
import { headersOf, secretOf } from "../../../../src/adapters/postgres/destinations/sealedValues.ts"
import { sealing } from "../../../../src/adapters/postgres/destinations/sealing.ts"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import { Destinations, type OpenDestination } from "../../../../src/application/ports/Destinations.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { makeAccount, makeEndpoint, makeTarget, webhook } from "../../../contracts/destinations/samples.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const [old, young] = [3, 9].map((byte) => Redacted.make(new Uint8Array(32).fill(byte))) as [
  Redacted.Redacted<Uint8Array>,
  Redacted.Redacted<Uint8Array>
]
const acme = OrgId.make("acme")
const ENDPOINTS = 1_200
const HOOK = "https://shop.example/hook"

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
            makeEndpoint(acme, n % 100 === 0 ? { headers, url: `${HOOK}?key=${n}` } : {}, {
              secrets: { secret: Redacted.make(`secret-${n}`) }
            }),
          { concurrency: 20 }
        )
        const previousUntil = DateTime.add(yield* DateTime.now, { hours: 1 })
        const rotation = { name: "secret", secret: Redacted.make("rotated"), published: {}, previousUntil }
        yield* (yield* Destinations).rotateSecret(webhook, acme, endpoints[0]!.id, rotation)
        const verifyToken = Redacted.make("to be looked up")
        const account = yield* makeAccount(acme, {}, { secrets: { accessToken: Redacted.make("a"), verifyToken } })
        const reconcile = { url: `${HOOK}/{messageId}?key=reconcile` }
        const target = yield* makeTarget(acme, { headers, reconcile }, { secrets: { token: Redacted.make("t") } })
        return { endpoints, account, target, verifyToken }
      }).pipe(Effect.provide(under(old)))

      // From before parameters were sealed.
      const clear = new pg.Client({ connectionString: Redacted.value(url) })
      yield* Effect.promise(async () => {
        await clear.connect()
        await clear.query(
          "update posthaste.destination set settings = jsonb_set(settings, '{url}', to_jsonb($2::text)) where id = $1",
          [made.endpoints[1]!.id, `${HOOK}?key=clear`]
        )
      })

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
        const target = (yield* forSending(acme, made.target.id))!
        expect(Redacted.value(target.secrets["token"]!)).toBe("t")
        const urlOf = ({ destination: { settings } }: OpenDestination) => (settings as { readonly url?: string }).url
        expect([urlOf(opened[0]!), urlOf(opened[1]!), urlOf(opened[100]!)]).toEqual([
          ...[`${HOOK}?key=0`, `${HOOK}?key=clear`, `${HOOK}?key=100`]
        ])
        expect(target.destination.settings).toMatchObject({ reconcile: { url: `${HOOK}/{messageId}?key=reconcile` } })
        const { rows } = yield* Effect.promise(() =>
          clear.query("select settings ->> 'url' as url from posthaste.destination where id = $1", [
            made.endpoints[1]!.id
          ])
        )
        expect(rows[0].url).toMatch(`${HOOK}?sealed:`)
        yield* Effect.promise(() => clear.end())
        expect(yield* knowsLookup("whatsapp", made.verifyToken)).toBe(true)
        expect(yield* knowsLookup("whatsapp", Redacted.make("another"))).toBe(false)
      }).pipe(Effect.provide(under(young)))
      expect(Exit.isFailure(yield* Effect.exit(Layer.build(under(old))))).toBe(true)
    }).pipe(Effect.scoped)
  )

  it.live("leaves what others change while it is at work, and seals that anew", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const under = (encryptionKey: Redacted.Redacted<Uint8Array>) => PostgresPorts.layer({ url, encryptionKey })
      const headers = { authorization: "before" }
      const secrets = { secret: Redacted.make("before") }
      const made = yield* Effect.forEach([1, 2, 3], () => makeEndpoint(acme, { headers }, { secrets })).pipe(
        Effect.provide(under(old))
      )
      const [replaced, rotated, changed] = made.map(({ id }) => String(id)) as [string, string, string]
      const { seal } = sealing(old)
      const sealed = (text: string, belongsTo: string) => seal(Redacted.make(text), belongsTo).toString("base64")
      const other = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
          client.on("error", () => {})
          await client.connect()
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
      const query = (text: string, values: ReadonlyArray<unknown> = []) =>
        Effect.promise(() => other.query<{ waiting: number }>(text, [...values]))

      // It has read the rows, and waits for whoever is changing them.
      yield* query("begin")
      yield* query("update destination set secrets = jsonb_build_object('secret', $2::text) where id = $1", [
        replaced,
        sealed("meanwhile", secretOf(acme, replaced, "secret"))
      ])
      const previous = { name: "secret", sealed: sealed("meanwhile", secretOf(acme, rotated, "secret")) }
      yield* query("update destination set previous_secrets = $2::jsonb where id = $1", [
        rotated,
        JSON.stringify([{ ...previous, until: "2100-01-01T00:00:00Z" }])
      ])
      yield* query(
        "update destination set settings = jsonb_set(settings, '{headers}', to_jsonb($2::text)) where id = $1",
        [changed, sealed('{"authorization":"meanwhile"}', headersOf(acme, changed))]
      )
      const run = yield* Effect.forkChild(
        rekey(young, [old], () => Effect.void).pipe(Effect.provide(Layer.fresh(Postgres.layer({ url }))))
      )
      const waits = Effect.map(
        query("select count(*)::int as waiting from pg_locks where not granted"),
        ({ rows }) => rows[0]!.waiting > 0
      )
      yield* Effect.repeat(Effect.delay(waits, "20 millis"), { until: (isWaiting) => isWaiting })
      yield* query("commit")
      yield* Fiber.join(run)

      yield* Effect.gen(function* () {
        const { forSending } = yield* Destinations
        const [one, two, three] = yield* Effect.forEach(made, ({ id }) => forSending(acme, id))
        expect(Redacted.value(one!.secrets["secret"]!)).toBe("meanwhile")
        expect(two!.previousSecrets.map(({ secret }) => Redacted.value(secret))).toEqual(["meanwhile"])
        expect((three!.destination.settings as { headers?: object }).headers).toEqual({ authorization: "meanwhile" })
      }).pipe(Effect.provide(under(young)))
    }).pipe(Effect.scoped)
  )
})
