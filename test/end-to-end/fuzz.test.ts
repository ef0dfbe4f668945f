/** A small run of `npm run fuzz`, with a fixed seed, so that every run of the tests makes the same requests. */
import { Effect, Exit, Redacted, Scope } from "effect"
import { expect, it } from "vitest"
import { fuzz } from "../fuzz/fuzz.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { metaThatRefuses } from "../servers/metaThatRefuses.ts"
import { operatorKey, startProduct } from "../servers/product.ts"
import { PATIENCE_MS } from "../servers/until.ts"

it("requests of any form are answered, and none of them with a 5xx", async () => {
  const scope = Scope.makeUnsafe()
  const database = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
  const meta = await metaThatRefuses()
  const product = await startProduct(database, { POSTHASTE_ROLES: "api,relay,projector", WHATSAPP_BASE_URL: meta.url })
  const report = await fuzz({
    url: product.url!,
    key: operatorKey,
    org: "fuzz",
    requests: 1500 * Number(process.env["POSTHASTE_TEST_SCALE"] ?? 1),
    seed: 4711,
    atOnce: 4,
    answerWithinMs: PATIENCE_MS
  })
  expect(report.findings).toEqual([])
  expect(product.process.exitCode).toBeNull()
  // It came past the doors: most operations were called, and some things were made, changed and read.
  expect(report.operations).toBeGreaterThan(100)
  for (const status of ["200", "201", "204", "400", "401", "404", "409"]) {
    expect(report.byStatus.get(status), status).toBeGreaterThan(0)
  }
  await product.stop()
  meta.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})
