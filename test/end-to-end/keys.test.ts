/** Keys that are lost, cut or wrong are named at the start; nothing is made in their place that would open nothing. */
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { afterEach, beforeEach, describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { runToEnd, startPosthaste, stop } from "../servers/posthaste.ts"
import { api, operatorKey, product } from "../servers/product.ts"
import { PATIENCE_MS } from "../servers/until.ts"

let home: string
beforeEach(() => {
  home = temporaryDirectory()
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const at = (name: string) => join(home, name)
const refusal = async () => {
  const { exitCode, printed } = await runToEnd({ POSTHASTE_DATA_DIR: home })
  expect(exitCode).toBe(1)
  expect(printed.trim().split("\n")).toHaveLength(1)
  return printed.trim()
}

describe("a data directory", () => {
  it(
    "whose keys are empty, cut, missing or another's is not started on",
    async () => {
      await stop(await startPosthaste({ POSTHASTE_DATA_DIR: home }))
      const operator = readFileSync(at("operator-key"), "utf8")
      const encryption = readFileSync(at("encryption-key"), "utf8")

      writeFileSync(at("operator-key"), "")
      expect(await refusal()).toMatch(/^posthaste: \S+operator-key is empty: bring it back/)
      writeFileSync(at("operator-key"), operator.slice(0, 30))
      expect(await refusal()).toMatch(/^posthaste: \S+operator-key was cut off: bring it back/)
      writeFileSync(at("operator-key"), operator)

      truncateSync(at("encryption-key"), 20)
      expect(await refusal()).toMatch(/^posthaste: \S+encryption-key must be 32 random bytes .+: bring it back/)
      rmSync(at("encryption-key"))
      expect(await refusal()).toMatch(
        /^posthaste: \S+encryption-key is missing, and the secrets .+ do not open without it/
      )
      expect(existsSync(at("encryption-key"))).toBe(false)
      writeFileSync(at("encryption-key"), Buffer.alloc(32, 1).toString("base64"))
      expect(await refusal()).toMatch(/^posthaste: no encryption key that is given sealed the secrets of this database/)

      writeFileSync(at("encryption-key"), encryption)
      expect(await stop(await startPosthaste({ POSTHASTE_DATA_DIR: home }))).toBe(0)
    },
    PATIENCE_MS * 5
  )
})

describe("a database", () => {
  it.live(
    "is not started on with another encryption key, also when its first secrets are older than the check",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        const right = yield* product(url, { POSTHASTE_ROLES: "api" })
        yield* Effect.promise(async () => {
          const call = api(right.url!, "acme")
          expect((await call("POST", "/webhook-endpoints", { url: "https://shop.example/hook" })).status).toBe(201)
          await right.stop()
          const wrong = () =>
            runToEnd({
              DATABASE_URL: url,
              POSTHASTE_OPERATOR_KEY: operatorKey,
              POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 6).toString("base64")
            })
          const refused = /^posthaste: no encryption key that is given sealed the secrets of this database[^\n]+\n$/
          expect(await wrong()).toMatchObject({ exitCode: 1, printed: expect.stringMatching(refused) })
        })
      }),
    PATIENCE_MS * 5
  )
})
