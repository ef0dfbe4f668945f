/**
 * Many accounts on one Posthaste, one of them with an expired token. At full size, some half a minute:
 *
 *   POSTHASTE_TEST_ACCOUNTS=50 POSTHASTE_TEST_MESSAGES=10000 npx vitest run test/end-to-end/whatsappAccounts.test.ts
 */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { until } from "../servers/until.ts"
import { whatsApp } from "../servers/whatsApp.ts"

const ACCOUNTS = Number(process.env["POSTHASTE_TEST_ACCOUNTS"] || 10)
const MESSAGES = Number(process.env["POSTHASTE_TEST_MESSAGES"] || 400)
const BATCH = 1_000

describe(`of ${ACCOUNTS} accounts, one whose token has expired`, () => {
  it.live(
    `leaves the others alone: of ${MESSAGES} messages its own wait without a try, and why is written down`,
    () =>
      Effect.gen(function* () {
        const { account, call, meta } = yield* whatsApp()
        yield* Effect.promise(async () => {
          const numbers = Array.from({ length: ACCOUNTS }, (_, index) => String(1_001 + index))
          const given = { rateLimit: { limit: 100_000, periodMs: 1_000 } }
          const [expired = "", ...others] = await Promise.all(
            numbers.map((number, index) => account(number, given, "acme", index === 0 ? "expired" : number))
          )
          const messages = Array.from({ length: MESSAGES }, (_, index) => ({
            ...{ channel: "whatsapp", to: `4915${String(100_000_000 + index)}` },
            payloadJson: { text: "Hello", from: numbers[index % ACCOUNTS] }
          }))
          const waiting: Array<string> = []
          for (let from = 0; from < messages.length; from += BATCH) {
            const { body } = await call<{ items: ReadonlyArray<{ message: { id: string } }> }>(
              ...(["POST", "/outbound/messages/batch", { messages: messages.slice(from, from + BATCH) }] as const)
            )
            for (const [index, { message }] of body.items.entries()) {
              if ((from + index) % ACCOUNTS === 0) waiting.push(message.id)
            }
          }
          const toSend = MESSAGES - waiting.length
          await until("all the others' messages to be taken", () => meta.sent.length === toSend, 120_000)
          // Each once, and none from the one.
          expect(new Set(meta.sent.map(({ to }) => to)).size).toBe(toSend)
          expect(new Set(meta.sent.map(({ sender }) => sender.phoneNumberId))).toEqual(new Set(numbers.slice(1)))
          await until("the counts", async () => {
            const { body } = await call<{ byStatus: Record<string, number> }>("GET", "/outbound/stats")
            return body.byStatus["SENT"] === toSend && body.byStatus["QUEUED"] === waiting.length
          })
          // One by one: not one has lost an attempt.
          for (const id of waiting) {
            const { body } = await call("GET", `/outbound/messages/${id}`)
            expect(body).toMatchObject({ status: "QUEUED", attempts: 0, attemptsMax: 6 })
          }
          const { items: circuits } = (
            await call<{ items: ReadonlyArray<{ id: string; status: string }> }>("GET", "/circuits?limit=200")
          ).body
          expect(circuits.find(({ id }) => id === expired)).toMatchObject({ status: "OPEN" })
          expect(circuits.filter(({ id, status }) => others.includes(id) && status !== "CLOSED")).toEqual([])
          // What an alert is raised on.
          const { body } = await call<{ items: ReadonlyArray<object> }>("GET", `/streams/circuit-${expired}`)
          expect(body.items[0]).toMatchObject({ type: "CircuitOpened", data: { error: { code: "whatsapp_190" } } })
        })
      }),
    600_000
  )
})
