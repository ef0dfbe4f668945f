import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import * as StandInMeta from "../../demo/meta/StandInMeta.ts"
import { readCallbackData } from "../../src/domain/whatsapp/callbackData.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product, startProduct } from "../servers/product.ts"

type Call = ReturnType<typeof api>

const templates = [{ name: "order_paid", language: "en_US", parameters: 1 }]

/** Meta, and Posthaste set up to send there, in one process unless the test brings its own workers. */
const setUp = (mood: (taken: { readonly to: string }) => StandInMeta.Mood, roles = "api,worker") =>
  Effect.gen(function* () {
    const meta = yield* StandInMeta.start({ templates, mood })
    const database = Redacted.value(yield* freshDatabase)
    // Meta lies on the loopback address: that the operator named it is enough.
    // A worker looks for what others left behind three times in its lease, and one that stands still for longer loses it.
    const settings = { POSTHASTE_ALLOWED_NETWORKS: "", WHATSAPP_BASE_URL: meta.url, POSTHASTE_LEASE_MS: "5000" }
    const server = yield* product(database, { ...settings, POSTHASTE_ROLES: roles })
    const worker = { ...settings, POSTHASTE_ROLES: "worker" }
    return { meta, database, worker, call: api(server.url!, "acme") }
  })

const takes = (): StandInMeta.Mood => ({ type: "takes" })

/** Long enough for a machine that does many other things. */
const PATIENT_MS = 30_000

const anAccount = (
  call: Call,
  meta: StandInMeta.StandInMeta,
  phoneNumberId: string,
  { accessToken = phoneNumberId, timeoutMs = PATIENT_MS } = {}
) =>
  Effect.promise(async () => {
    const number = { phoneNumberId, displayPhoneNumber: "15550783881", webhook: null }
    meta.register({ ...number, accessToken })
    const { status, body } = await call<{ id: string }>("POST", "/whatsapp-accounts", {
      ...{ phoneNumberId, accessToken, appSecret: "app", verifyToken: "hub" },
      ...{ timeoutMs, reconcile: { waitMs: 1_000, otherwise: "deadLetter" } }
    })
    expect(status).toBe(201)
    // Another token was good when the account was made.
    meta.register({ ...number, accessToken: phoneNumberId })
    return body.id
  })

const send = (call: Call, request: object = {}) =>
  Effect.promise(async () => {
    const { status, body } = await call<{ id: string }>("POST", "/outbound/messages", {
      ...{ channel: "whatsapp", to: "+49 151 12345678", payloadJson: { text: "Hello" } },
      ...request
    })
    expect(status).toBe(201)
    return body.id
  })

interface Event {
  readonly type: string
  readonly status: string
  readonly data: { readonly reason?: string; readonly attempt?: number }
}

/** Waits until the message has one of these statuses; answers its history. */
const reaches = (call: Call, id: string, ...statuses: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    for (;;) {
      const { body } = await call<{ items: ReadonlyArray<Event> }>("GET", `/outbound/messages/${id}/events`)
      if (statuses.includes(body.items.at(-1)!.status)) return body.items
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  })

const typesOf = (history: ReadonlyArray<Event>) => history.map(({ type }) => type)

describe("a WhatsApp message", () => {
  it.live("is SENT when Meta takes it, FAILED when it refuses it, and in doubt without an answer, sent once", () =>
    Effect.gen(function* () {
      const { meta, call } = yield* setUp(({ to }) => {
        if (to.endsWith("1")) return { type: "refuses", code: 131026 }
        return to.endsWith("2") ? { type: "takesAndNeverAnswers" } : { type: "takes" }
      })
      yield* anAccount(call, meta, "1001")
      yield* anAccount(call, meta, "1002", { timeoutMs: 500 })
      const from = (phoneNumberId: string) => ({ payloadJson: { text: "Hello", from: phoneNumberId } })
      const silent = yield* send(call, { ...from("1002"), to: "4915100000002" })
      const refused = yield* send(call, { ...from("1001"), to: "4915100000001" })
      const components = [{ type: "body", parameters: [{ type: "text", text: "4711" }] }]
      const template = { templateCode: "order_paid", payloadJson: { from: "1001", language: "en_US", components } }
      const taken = yield* send(call, { ...template, to: "+49 151 0000-0003" })

      expect(typesOf(yield* reaches(call, taken, "SENT"))).toEqual([
        "MessageQueued",
        "AttemptStarted",
        "AttemptSucceeded"
      ])
      const sent = meta.sent.find(({ type }) => type === "template")!
      const { body } = yield* Effect.promise(() => call("GET", `/outbound/messages/${taken}`))
      expect(body).toMatchObject({ to: "4915100000003", status: "SENT", providerMessageId: sent.id })
      expect(readCallbackData(sent.callbackData!)).toEqual({ messageId: taken, epoch: 1, attempt: 1 })

      expect((yield* reaches(call, refused, "FAILED")).at(-1)).toMatchObject({ type: "MessageFailed" })

      const history = yield* reaches(call, silent, "DEAD_LETTER")
      expect(typesOf(history).slice(1)).toEqual([
        "AttemptStarted",
        "AttemptUnresolved",
        "AttemptFailed",
        "MessageDeadLettered"
      ])
      expect(history.at(-1)!.data.reason).toBe("outcome unknown")
      expect(meta.sent.map(({ to }) => to).toSorted()).toEqual(["4915100000002", "4915100000003"])
    })
  )

  it.live("that was taken when its worker was killed is not sent again", () =>
    Effect.gen(function* () {
      const { meta, database, worker, call } = yield* setUp(() => ({ type: "takesAndNeverAnswers" }), "api")
      const first = yield* Effect.promise(() => startProduct(database, { ...worker, POSTHASTE_LEASE_MS: "1000" }))
      yield* anAccount(call, meta, "1001")
      const id = yield* send(call)
      while (meta.sent.length === 0) yield* Effect.sleep("5 millis")
      yield* Effect.promise(() => first.kill())
      yield* product(database, worker)
      const history = yield* reaches(call, id, "DEAD_LETTER")
      expect(typesOf(history)).toContain("AttemptUnresolved")
      expect(history.at(-1)!.data.reason).toBe("outcome unknown")
      expect(meta.sent).toHaveLength(1)
    })
  )
})

describe("an account whose token has expired", () => {
  it.live("keeps its messages without using their attempts, hurts no other, and sends them once it is put right", () =>
    Effect.gen(function* () {
      const { meta, call } = yield* setUp(takes)
      const expired = yield* anAccount(call, meta, "1001", { accessToken: "expired" })
      yield* anAccount(call, meta, "1002")
      const from = (phoneNumberId: string) => ({ payloadJson: { text: "Hello", from: phoneNumberId } })
      const waiting = [yield* send(call, from("1001")), yield* send(call, from("1001"))]
      const circuit = Effect.promise(async () => {
        const { body } = await call<{ items: ReadonlyArray<{ id: string; status: string }> }>("GET", "/circuits")
        return body.items.find(({ id }) => id === expired)!.status
      })
      while ((yield* circuit) !== "OPEN") yield* Effect.sleep("20 millis")
      yield* reaches(call, yield* send(call, from("1002")), "SENT")
      for (const id of waiting) {
        const { body } = yield* Effect.promise(() => call("GET", `/outbound/messages/${id}`))
        expect(body).toMatchObject({ status: "QUEUED", attempts: 0 })
      }
      yield* Effect.promise(() => call("PATCH", `/whatsapp-accounts/${expired}`, { accessToken: "1001" }))
      yield* Effect.promise(() => call("POST", `/circuits/${expired}/reset`, {}))
      for (const id of waiting) yield* reaches(call, id, "SENT")
      const requests = meta.requests.filter(({ answered }) => answered === 401)
      expect(requests.length).toBeLessThanOrEqual(2)
    })
  )
})
