/** A machine whose clock is wrong: what is written, sent and decided is in the database's time. */
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { runToEnd } from "../servers/posthaste.ts"
import { api, operatorKey, product } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"
import { PATIENCE_MS, until } from "../servers/until.ts"

const MINUTE = 60_000

const wrongBy = (ms: number) => ({
  NODE_OPTIONS: `--import=${join(import.meta.dirname, "../servers/wrongClock.mjs")}`,
  WRONG_CLOCK_MS: String(ms)
})

/** Failures are what is sent here. */
const patient = { POSTHASTE_CIRCUIT_FAILURES: "1000" }

interface Message {
  readonly id: string
  readonly createdAt: string
  readonly status: string
}
interface Process {
  readonly roles: ReadonlyArray<string>
  readonly clockOffsetMs: number
}

describe("a process on a machine whose clock is wrong", () => {
  it.live(
    "expires, retries, dates and signs by the database's clock",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        // Each message fails at first: with a clock that is behind, the waits were used up at once.
        const far = yield* receiver((_, nth) => ({ status: nth < 2 ? 500 : 200 }))
        const behind = yield* product(url, {
          POSTHASTE_ROLES: "worker,projector",
          ...patient,
          ...wrongBy(-50 * MINUTE)
        })
        const ahead = yield* product(url, { POSTHASTE_ROLES: "api,worker", ...patient, ...wrongBy(50 * MINUTE) })
        const call = api(ahead.url!, "acme")
        yield* Effect.promise(async () => {
          const since = Date.now()
          const to = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body.id
          const expiresAt = new Date(since + 10 * MINUTE).toISOString()
          const retry = { strategy: "fixed", baseMs: 1_000, attemptsMax: 3, jitter: [1, 1] }
          const sent: Array<Message> = []
          for (let n = 0; n < 20; n++) {
            const message = { channel: "webhook", to, payloadJson: n, expiresAt, retry }
            sent.push((await call<Message>("POST", "/outbound/messages", message)).body)
          }
          await until("forty requests", () => far.received.length === 40)
          const within = (ms: number) => ms > since - 5_000 && ms < Date.now() + 5_000
          for (const { headers } of far.received)
            expect(within(Number(headers["webhook-timestamp"]) * 1_000)).toBe(true)
          for (const { id, createdAt } of sent) {
            expect(within(Date.parse(createdAt))).toBe(true)
            const { items } = (
              await call<{ items: ReadonlyArray<{ startedAt: string }> }>("GET", `/outbound/messages/${id}/attempts`)
            ).body
            const [first, second] = items.map(({ startedAt }) => Date.parse(startedAt))
            expect(second! - first!).toBeGreaterThanOrEqual(900)
            expect(within(second!)).toBe(true)
          }
          const { items } = (await call<{ items: ReadonlyArray<Process> }>("GET", "/processes")).body
          const offsetOf = (role: string) => items.find(({ roles }) => roles.includes(role))!.clockOffsetMs
          expect(Math.abs(offsetOf("projector") + 50 * MINUTE)).toBeLessThan(5_000)
          expect(Math.abs(offsetOf("api") - 50 * MINUTE)).toBeLessThan(5_000)
          await until("a line in each log", () =>
            [behind, ahead].every(({ printed }) =>
              /the clock of this machine is 50 min (behind|ahead of) the database's/.test(printed())
            )
          )
        })
      }),
    PATIENCE_MS * 5
  )

  it.live("by more than an hour does not start, and says why in one line", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const { exitCode, printed } = yield* Effect.promise(() =>
        runToEnd({
          DATABASE_URL: url,
          POSTHASTE_OPERATOR_KEY: operatorKey,
          POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64"),
          ...wrongBy(61 * MINUTE)
        })
      )
      expect(exitCode).toBe(1)
      expect(printed.trim()).toBe(
        "posthaste: the clock of this machine is 61 min ahead of the database's: set the wrong one right, then start again"
      )
    })
  )
})
