import { expect, it } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import pg from "pg"
import { describe } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import { type HttpTargetSettings, HttpTargets } from "../../../../src/application/ports/HttpTargets.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
const settings: HttpTargetSettings = {
  url: "https://psp.example",
  method: "POST",
  headers: {},
  bodyFields: {},
  idempotency: "header",
  reconcile: null,
  retry: null,
  rateLimit: null,
  maxInFlight: 1,
  timeoutMs: 1_000,
  onDeadLetter: "skip"
}
const secret = "sk_live_not_to_be_found_anywhere"
const acme = OrgId.make("acme")

/** Two targets of one org, and the database they lie in. */
const withTargets = <A, E>(
  body: (
    database: pg.Client,
    targets: HttpTargets["Service"],
    made: ReadonlyArray<Effect.Success<ReturnType<HttpTargets["Service"]["create"]>>>
  ) => Effect.Effect<A, E>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const database = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString: Redacted.value(url) })
          await client.connect()
          return client
        }),
        (client) => Effect.promise(() => client.end())
      )
      return yield* Effect.gen(function* () {
        const targets = yield* HttpTargets
        const make = (text: string) => targets.create(acme, settings, { token: Redacted.make(text) })
        return yield* body(database, targets, [yield* make(secret), yield* make("another")])
      }).pipe(Effect.provide(PostgresPorts.layer({ url, encryptionKey })))
    })
  )

describe("the secret of an HTTP target at rest", () => {
  it.live("can be read nowhere in its row", () =>
    withTargets((database) =>
      Effect.gen(function* () {
        const { rows } = yield* Effect.promise(() => database.query("select * from posthaste.http_target"))
        const text = JSON.stringify(rows)
        expect(text).toContain("token")
        expect(text).not.toContain(secret)
        expect(text).not.toContain(Buffer.from(secret).toString("base64"))
      })
    )
  )

  it.live("does not open in another target's row", () =>
    withTargets((database, targets, [first, second]) =>
      Effect.gen(function* () {
        yield* Effect.promise(() =>
          database.query(
            "update posthaste.http_target set secrets = (select secrets from posthaste.http_target where id = $1) where id = $2",
            [first!.id, second!.id]
          )
        )
        expect(Exit.isFailure(yield* Effect.exit(targets.calling(acme, second!.id)))).toBe(true)
        expect(Exit.isSuccess(yield* Effect.exit(targets.calling(acme, first!.id)))).toBe(true)
      })
    )
  )

  it.live("is gone with its target", () =>
    withTargets((database, targets, [first]) =>
      Effect.gen(function* () {
        yield* targets.remove(acme, first!.id)
        const { rows } = yield* Effect.promise(() =>
          database.query("select secrets from posthaste.http_target where id = $1", [first!.id])
        )
        expect(rows).toEqual([{ secrets: {} }])
      })
    )
  )
})
