import { expect, it } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import pg from "pg"
import { describe } from "vitest"
import * as PostgresPorts from "../../../../src/adapters/postgres/PostgresPorts.ts"
import {
  type WhatsAppAccount,
  type WhatsAppAccountSettings,
  WhatsAppAccounts
} from "../../../../src/application/ports/WhatsAppAccounts.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const encryptionKey = Redacted.make(new Uint8Array(32).fill(7))
const settings: WhatsAppAccountSettings = {
  graphVersion: "v25.0",
  retry: null,
  rateLimit: { limit: 80, periodMs: 1_000 },
  maxInFlight: 1,
  timeoutMs: 1_000,
  onDeadLetter: "skip",
  verifySignature: true,
  reconcile: { waitMs: 60_000, otherwise: "deadLetter" }
}
const acme = OrgId.make("acme")
const secrets = ["EAAG_not_to_be_found_anywhere", "app_secret_not_to_be_found", "verify_token_not_to_be_found"] as const

/** Two accounts of one org, and the database they lie in. */
const withAccounts = <A, E>(
  body: (
    query: (text: string, values?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<unknown>>,
    accounts: WhatsAppAccounts["Service"],
    made: readonly [WhatsAppAccount, WhatsAppAccount]
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
      const query = (text: string, values: ReadonlyArray<unknown> = []) =>
        Effect.promise(async () => (await database.query(text, [...values])).rows)
      return yield* Effect.gen(function* () {
        const accounts = yield* WhatsAppAccounts
        const [accessToken, appSecret, verifyToken] = secrets.map((text) => Redacted.make<string>(text))
        const make = (phoneNumberId: string) =>
          Effect.map(
            accounts.create(acme, phoneNumberId, settings, {
              accessToken: accessToken!,
              appSecret: appSecret!,
              verifyToken: verifyToken!
            }),
            (account) => account as WhatsAppAccount
          )
        return yield* body(query, accounts, [yield* make("1001"), yield* make("1002")])
      }).pipe(Effect.provide(PostgresPorts.layer({ url, encryptionKey })))
    })
  )

describe("the secrets of a WhatsApp account at rest", () => {
  it.live("can be read nowhere in its row", () =>
    withAccounts((query) =>
      Effect.gen(function* () {
        const text = JSON.stringify(yield* query("select *, verify_token_hash::text from posthaste.whatsapp_account"))
        expect(text).toContain("accessToken")
        for (const secret of secrets) {
          expect(text).not.toContain(secret)
          expect(text).not.toContain(Buffer.from(secret).toString("base64").slice(0, -4))
          expect(text).not.toContain(Buffer.from(secret).toString("hex"))
        }
      })
    )
  )

  it.live("open in no other account's row, and under no other name", () =>
    withAccounts((query, accounts, [first, second]) =>
      Effect.gen(function* () {
        yield* query(
          "update posthaste.whatsapp_account set secrets = (select secrets from posthaste.whatsapp_account where id = $1) where id = $2",
          [first.id, second.id]
        )
        yield* query(
          "update posthaste.whatsapp_account set secrets = jsonb_set(secrets, '{appSecret}', secrets -> 'accessToken') where id = $1",
          [first.id]
        )
        expect(Exit.isFailure(yield* Effect.exit(accounts.calling(acme, second.id)))).toBe(true)
        expect(Exit.isSuccess(yield* Effect.exit(accounts.calling(acme, first.id)))).toBe(true)
        expect(Exit.isFailure(yield* Effect.exit(accounts.receiving(first.phoneNumberId)))).toBe(true)
      })
    )
  )

  it.live("are gone with it", () =>
    withAccounts((query, accounts, [first]) =>
      Effect.gen(function* () {
        yield* accounts.remove(acme, first.id)
        const rows = yield* query("select secrets, verify_token_hash from posthaste.whatsapp_account where id = $1", [
          first.id
        ])
        expect(rows).toEqual([{ secrets: {}, verify_token_hash: null }])
      })
    )
  )
})
