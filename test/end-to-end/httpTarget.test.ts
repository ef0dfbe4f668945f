import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product, startProduct } from "../servers/product.ts"
import { type Psp, psp } from "../servers/psp.ts"

type Call = ReturnType<typeof api>

/** It looks for what others left behind three times in its lease. If it stood still for longer itself, it would lose it. */
const worker = { POSTHASTE_ROLES: "worker", POSTHASTE_LEASE_MS: "5000" }

/** The API, in a process of its own, over a database of its own. */
const posthaste = Effect.gen(function* () {
  const url = Redacted.value(yield* freshDatabase)
  const server = yield* product(url, { POSTHASTE_ROLES: "api" })
  return { url, call: api(server.url!, "acme") }
})

/** Sends one charge to `far`; the target waits two seconds for answers. */
const charge = (call: Call, { url }: Psp, settings: object) =>
  Effect.promise(async () => {
    const target = await call<{ id: string }>("POST", "/http-targets", { url, timeoutMs: 2_000, ...settings })
    expect(target.status).toBe(201)
    const { status, body } = await call<{ id: string }>("POST", "/outbound/messages", {
      channel: "http",
      to: target.body.id,
      payloadJson: { amount: 4711 },
      retry: { strategy: "fixed", baseMs: 100, jitter: [1, 1] }
    })
    expect(status).toBe(201)
    return body.id
  })

interface Event {
  readonly type: string
  readonly data: { readonly reason?: string }
}

/** Waits for the message's ending; answers its history. */
const ended = (call: Call, id: string) =>
  Effect.promise(async () => {
    for (;;) {
      const { body } = await call<{ items: ReadonlyArray<Event> }>("GET", `/outbound/messages/${id}/events`)
      if (["MessageDelivered", "MessageFailed", "MessageDeadLettered"].includes(body.items.at(-1)!.type)) {
        return body.items
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })

/** The facts behind the first. On a busy machine also a question, or a further call, may get no answer in time. */
const storyOf = (history: ReadonlyArray<Event>) =>
  history
    .slice(1)
    .map(({ type }) => type)
    .join(" ")
const calledAgain = /^(AttemptStarted AttemptFailed )+AttemptStarted AttemptSucceeded MessageDelivered$/
const asked = /^AttemptStarted (AttemptUnresolved )+AttemptSucceeded MessageDelivered$/
const askedAndCalledAgain = /^AttemptStarted (AttemptUnresolved )+AttemptFailed AttemptStarted /

const reconcileAt = ({ url }: Psp) => ({ reconcile: { url: `${url}/{messageId}` } })

describe("a payment provider that takes the money and answers too late", () => {
  it.live("charges once when it honours the idempotency key, however often it is called", () =>
    Effect.gen(function* () {
      const far = yield* psp({ mood: "answersTooLate", honoursKeys: true })
      const { url, call } = yield* posthaste
      yield* product(url, worker)
      const id = yield* charge(call, far, { idempotency: "header" })
      expect(storyOf(yield* ended(call, id))).toMatch(calledAgain)
      expect(far.requests.length).toBeGreaterThanOrEqual(2)
      expect(new Set(far.requests)).toEqual(new Set([id]))
      expect(far.charges).toEqual([id])
    })
  )

  it.live("is called once and then asked when it does not", () =>
    Effect.gen(function* () {
      const far = yield* psp({ mood: "answersTooLate", honoursKeys: false })
      const { url, call } = yield* posthaste
      yield* product(url, worker)
      const id = yield* charge(call, far, { idempotency: "none", ...reconcileAt(far) })
      expect(storyOf(yield* ended(call, id))).toMatch(asked)
      expect(far.requests).toEqual([id])
      expect(far.charges).toEqual([id])
    })
  )

  it.live("is called once and left to an operator when there is nowhere to ask", () =>
    Effect.gen(function* () {
      const far = yield* psp({ mood: "answersTooLate", honoursKeys: false })
      const { url, call } = yield* posthaste
      yield* product(url, worker)
      const id = yield* charge(call, far, { idempotency: "none" })
      const history = yield* ended(call, id)
      expect(history.at(-1)).toMatchObject({ type: "MessageDeadLettered", data: { reason: "outcome unknown" } })
      expect(far.requests).toEqual([id])
      expect(far.charges).toEqual([id])
    })
  )

  it.live("is not called again because the worker was killed while it waited", () =>
    Effect.gen(function* () {
      const far = yield* psp({ mood: "answersTooLate", honoursKeys: false })
      const { url, call } = yield* posthaste
      const first = yield* Effect.promise(() => startProduct(url, { ...worker, POSTHASTE_LEASE_MS: "1000" }))
      const id = yield* charge(call, far, { idempotency: "none", timeoutMs: 30_000, ...reconcileAt(far) })
      while (far.charges.length === 0) yield* Effect.sleep("10 millis")
      yield* Effect.promise(() => first.kill())
      yield* product(url, worker)
      expect(storyOf(yield* ended(call, id))).toMatch(asked)
      expect(far.requests).toEqual([id])
      expect(far.charges).toEqual([id])
    })
  )
})

describe("a payment provider that breaks off before it takes the money", () => {
  it.live("says so when it is asked, is called again, and charges once", () =>
    Effect.gen(function* () {
      const far = yield* psp({ mood: "breaksOffBefore", honoursKeys: false })
      const { url, call } = yield* posthaste
      yield* product(url, worker)
      const id = yield* charge(call, far, { idempotency: "none", ...reconcileAt(far) })
      expect(storyOf(yield* ended(call, id))).toMatch(askedAndCalledAgain)
      expect(far.requests).toEqual([id, id])
      expect(far.charges).toEqual([id])
    })
  )
})
