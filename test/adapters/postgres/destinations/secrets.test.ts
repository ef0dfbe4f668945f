/** What a database dump shows of a destination's secrets: nothing, wherever they are moved to. */
import { expect, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Redacted } from "effect"
import { describe } from "vitest"
import { type Destination, Destinations } from "../../../../src/application/ports/Destinations.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import {
  http,
  makeAccount,
  makeEndpoint,
  makeTarget,
  webhook,
  whatsapp
} from "../../../contracts/destinations/samples.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"
import { session } from "../../../servers/session.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
const secret = "sk_live_not_to_be_found_anywhere"
const acme = OrgId.make("acme")
const secrets = {
  verifyToken: Redacted.make(`${secret}_verify`),
  one: Redacted.make(`${secret}_one`),
  two: Redacted.make(`${secret}_two`)
}

/** Two destinations of each kind, and the database they lie in. */
const withDestinations = <A, E>(
  body: (
    query: (text: string, values?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Record<string, unknown>>>,
    made: ReadonlyArray<readonly [Destination, Destination]>
  ) => Effect.Effect<A, E, Destinations>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const database = yield* session(url)
      return yield* Effect.gen(function* () {
        const headers = { authorization: secret }
        const url = `https://shop.example/hook?tenant=5&sig=${secret}`
        const reconcile = { url: `https://shop.example/ask/{messageId}?key=${secret}` }
        const beside = { secrets }
        const made = [
          [yield* makeEndpoint(acme, { headers, url }, beside), yield* makeEndpoint(acme, {}, beside)],
          [yield* makeTarget(acme, { headers, url, reconcile }, beside), yield* makeTarget(acme, {}, beside)],
          [yield* makeAccount(acme, {}, beside), yield* makeAccount(acme, {}, beside)]
        ] as const
        return yield* body(
          (text, values = []) => Effect.promise(async () => (await database.query(text, [...values])).rows),
          made
        )
      }).pipe(Effect.provide(PostgresPorts.layer({ url, encryptionKey })))
    })
  )

const kindOf = ({ channel }: Destination) => ({ webhook, http, whatsapp })[channel as "http"]

describe("the secrets and headers of a destination at rest", () => {
  it.live("can be read nowhere in its row", () =>
    withDestinations((query, made) =>
      Effect.gen(function* () {
        const previousUntil = DateTime.add(yield* DateTime.now, { hours: 1 })
        for (const [first] of made) {
          const rotation = { name: "one", secret: Redacted.make(`${secret}_rotated`), published: {}, previousUntil }
          yield* (yield* Destinations).rotateSecret(kindOf(first), acme, first.id, rotation)
        }
        const text = JSON.stringify(yield* query("select *, lookup_hash::text as hash from posthaste.destination"))
        expect(text).toContain("verifyToken")
        expect(text).not.toContain(secret)
        expect(text).not.toContain(Buffer.from(secret).toString("base64").slice(0, -4))
        expect(text).not.toContain(Buffer.from(secret).toString("hex"))
      })
    )
  )

  it.live("are the parameters of its URLs, too: these open in no other row, and under no other name", () =>
    withDestinations((query, made) =>
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const urls = ({ id }: Destination) =>
          Effect.map(Effect.exit(destinations.forSending(acme, id)), (exit) => {
            if (Exit.isFailure(exit)) return null
            const { url, reconcile } = exit.value!.destination.settings as unknown as {
              url: string
              reconcile?: { url: string } | null
            }
            return [url, reconcile?.url]
          })
        const [[endpoint, another], [target]] = made as readonly [(typeof made)[0], (typeof made)[0]]
        const hook = `https://shop.example/hook?tenant=5&sig=${secret}`
        expect(yield* urls(endpoint)).toEqual([hook, undefined])
        expect(yield* urls(target)).toEqual([hook, `https://shop.example/ask/{messageId}?key=${secret}`])
        const rows = yield* query("select settings ->> 'url' as url from posthaste.destination where id = $1", [
          endpoint.id
        ])
        expect(rows[0]!["url"]).toMatch(/^https:\/\/shop\.example\/hook\?sealed:[\w+/=]+$/)

        const moved = "jsonb_build_object('url', (select settings ->> 'url' from posthaste.destination where id = $1))"
        yield* query(`update posthaste.destination set settings = settings || ${moved} where id = $2`, [
          endpoint.id,
          another.id
        ])
        expect(yield* urls(another)).toBeNull()
        const renamed = "jsonb_set(settings, '{reconcile,url}', settings -> 'url')"
        yield* query(`update posthaste.destination set settings = ${renamed} where id = $1`, [target.id])
        // What was remembered of it goes; it can't be read any more.
        yield* Effect.exit(destinations.setPaused(http, acme, target.id, true))
        expect(yield* urls(target)).toBeNull()

        // As they were stored before they were sealed.
        const clear = `jsonb_set(settings, '{url}', to_jsonb('${hook}'::text))`
        yield* query(`update posthaste.destination set settings = ${clear} where id = $1`, [another.id])
        yield* destinations.setPaused(webhook, acme, another.id, true)
        expect(yield* urls(another)).toEqual([hook, undefined])
        // A change of one leaves the others.
        yield* destinations.change(webhook, acme, endpoint.id, { settings: { description: "new" } })
        expect(yield* urls(endpoint)).toEqual([hook, undefined])
      })
    )
  )

  it.live("open in no other row, and under no other name", () =>
    withDestinations((query, made) =>
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const opens = ({ id }: Destination) =>
          Effect.map(Effect.exit(destinations.forSending(acme, id)), (exit) => Exit.isSuccess(exit))
        for (const [first, second] of made) {
          const moved = "(select secrets from posthaste.destination where id = $1)"
          yield* query(`update posthaste.destination set secrets = ${moved} where id = $2`, [first.id, second.id])
          expect([yield* opens(first), yield* opens(second)]).toEqual([true, false])
          const renamed = "jsonb_set(secrets, '{one}', secrets -> 'two')"
          yield* query(`update posthaste.destination set secrets = ${renamed} where id = $1`, [first.id])
          yield* destinations.setPaused(kindOf(first), acme, first.id, true)
          expect(yield* opens(first)).toBe(false)
        }
      })
    )
  )

  it.live("are gone with it", () =>
    withDestinations((query, made) =>
      Effect.gen(function* () {
        const destinations = yield* Destinations
        for (const [first] of made) {
          expect(yield* destinations.remove(kindOf(first), acme, first.id)).toBe(true)
          const [row] = yield* query("select * from posthaste.destination where id = $1", [first.id])
          expect(row).toMatchObject({ secrets: {}, previous_secrets: [], lookup_hash: null })
          expect(row!["settings"]).not.toHaveProperty("headers")
          // Alerts about it still say where it was.
          if (first.channel !== "whatsapp") expect(row!["settings"]).toMatchObject({ url: "https://shop.example/hook" })
          expect(JSON.stringify(row)).not.toContain("sealed:")
          const found = (yield* destinations.among([first.id])).get(first.id)
          expect(found).toMatchObject({ id: first.id, removed: true })
        }
      })
    )
  )
})
