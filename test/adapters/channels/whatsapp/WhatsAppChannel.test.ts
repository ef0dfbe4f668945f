import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import { documentedCodes } from "../../../../demo/meta/graphErrors.ts"
import * as StandInMeta from "../../../../demo/meta/StandInMeta.ts"
import { type CodeClass, parseCodes } from "../../../../src/adapters/channels/whatsapp/errors.ts"
import type { WhatsAppSettings } from "../../../../src/adapters/channels/whatsapp/settings.ts"
import * as WhatsAppChannel from "../../../../src/adapters/channels/whatsapp/WhatsAppChannel.ts"
import type { OutboundMessage, Reply } from "../../../../src/application/ports/Channels.ts"
import type { Destination, Destinations } from "../../../../src/application/ports/Destinations.ts"
import { StoreUnavailable } from "../../../../src/application/ports/errors.ts"
import { DestinationId, MessageId, OrgId } from "../../../../src/domain/ids.ts"
import { readCallbackData } from "../../../../src/domain/whatsapp/callbackData.ts"
import { destinationOf, senderKnowing, whatsapp } from "../../../contracts/destinations/samples.ts"
import { receiver } from "../net/receiver.ts"

const org = OrgId.make("acme")
const token = "EAAG_an_access_token_that_nobody_may_see"
const phoneNumberId = "106540352242922"
const number = { phoneNumberId, accessToken: token, displayPhoneNumber: "15550783881", webhook: null }
const templates = [{ name: "order_paid", language: "en_US", parameters: 1 }]

type Account = Destination<WhatsAppSettings>

const accountOf = (change: Partial<WhatsAppSettings> = {}): Account =>
  destinationOf<WhatsAppSettings>(whatsapp, org, {
    phoneNumberId,
    maxInFlight: 7,
    timeoutMs: 60_000,
    reconcile: { waitMs: 90_000, otherwise: "deadLetter" },
    ...change
  })

type Calling = Destinations["Service"]["forSending"]

/** A channel that knows one account, or what `calling` says. */
const channelAt = (url: string, account: Account | Calling = accountOf(), { codes = "", accessToken = token } = {}) =>
  senderKnowing(
    WhatsAppChannel.channel({ baseUrl: new URL(url), codes: Result.getOrThrow(parseCodes(codes)) }),
    typeof account === "function"
      ? account
      : () =>
          Effect.succeed({
            destination: account,
            secrets: { accessToken: Redacted.make(accessToken) },
            previousSecrets: []
          })
  )

const aMessage = (change: Partial<OutboundMessage> = {}): OutboundMessage => ({
  messageId: MessageId.make(randomUUID()),
  orgId: org,
  destination: DestinationId.make(randomUUID()),
  to: "4915112345678",
  epoch: 2,
  attempt: 3,
  eventType: null,
  templateCode: null,
  correlationId: "c-17",
  body: '{"text":"Hello"}',
  ...change
})

/** Meta, and a channel that leads there. */
const metaWith = (options: StandInMeta.Options = {}, change: Partial<WhatsAppSettings> = {}) =>
  Effect.gen(function* () {
    const meta = yield* StandInMeta.start({ templates, ...options })
    meta.register(number)
    return { meta, channel: yield* channelAt(meta.url, accountOf(change)) }
  })

const sendIn = (mood: StandInMeta.Mood, change: Partial<WhatsAppSettings> = {}) =>
  Effect.gen(function* () {
    const { meta, channel } = yield* metaWith({ mood: () => mood }, change)
    const reply = yield* channel.send(aMessage())
    return { meta, reply }
  })

/** What a reply says in one word and one code. */
const said = ({ outcome }: Reply) => [outcome.type, outcome.type === "Accepted" ? null : outcome.error.code]

describe("a message to WhatsApp", () => {
  it.live("is taken as a template, and Meta's id and answer are kept", () =>
    Effect.gen(function* () {
      const { meta, channel } = yield* metaWith()
      const components = [{ type: "body", parameters: [{ type: "text", text: "4711 🐎" }] }]
      const message = aMessage({
        templateCode: "order_paid",
        body: JSON.stringify({ language: "en_US", components, from: "x" })
      })
      const reply = yield* channel.send(message)
      const [taken] = meta.sent
      expect(reply.outcome).toMatchObject({
        type: "Accepted",
        status: 200,
        providerMessageId: taken!.id,
        delivered: false
      })
      expect(JSON.parse(reply.responseBody!)).toMatchObject({ messages: [{ id: taken!.id }] })
      expect(meta.requests[0]!.path).toBe(`/v25.0/${phoneNumberId}/messages`)
      expect(JSON.parse(meta.requests[0]!.body)).toEqual({
        messaging_product: "whatsapp",
        recipient_type: "individual",
        to: "4915112345678",
        type: "template",
        template: { name: "order_paid", language: { code: "en_US" }, components },
        biz_opaque_callback_data: expect.any(String)
      })
    })
  )

  it.live.each([
    ['{"text":"Hello"}', { body: "Hello" }],
    ['{"text":{"body":"Hello","preview_url":true}}', { body: "Hello", preview_url: true }],
    ['{"text":{"body":"Hello"}}', { body: "Hello", preview_url: false }]
  ] as const)("is taken as a text: %s", ([body, text]) =>
    Effect.gen(function* () {
      const { meta, channel } = yield* metaWith()
      expect(said(yield* channel.send(aMessage({ body })))).toEqual(["Accepted", null])
      expect(meta.sent[0]).toMatchObject({ type: "text", content: text })
    })
  )

  it.live("says which attempt it is, so that a receipt can say it again", () =>
    Effect.gen(function* () {
      const { meta, channel } = yield* metaWith()
      const message = aMessage()
      yield* channel.send(message)
      const { messageId, epoch, attempt } = message
      expect(readCallbackData(meta.sent[0]!.callbackData!)).toEqual({ messageId, epoch, attempt })
    })
  )

  it.live("keeps the digits of the numbers in its components", () =>
    Effect.gen(function* () {
      const { meta, channel } = yield* metaWith()
      const parameter = '{"type":"currency","currency":{"amount_1000":12345678901234567890,"rate":1.10}}'
      const body = `{"language":"en_US","components":[{"type":"body","parameters":[${parameter}]}]}`
      expect(said(yield* channel.send(aMessage({ templateCode: "order_paid", body })))).toEqual(["Accepted", null])
      expect(meta.requests[0]!.body).toContain(parameter)
    })
  )

  it.live("is not made when there is no account, or its settings can't be read, or nothing can be said", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start()
      const sendBy = (calling: Calling, message = aMessage()) =>
        Effect.flatMap(channelAt(meta.url, calling), (channel) => channel.send(message))
      const away = new StoreUnavailable({ cause: new Error("away") })
      expect(said(yield* sendBy(() => Effect.succeed(null)))).toEqual(["Refused", "account_missing"])
      expect(said(yield* sendBy(() => Effect.fail(away)))).toEqual(["Deferred", "store_unavailable"])
      expect(said(yield* sendBy(() => Effect.die("does not open")))).toEqual(["Deferred", "store_unavailable"])
      const channel = yield* channelAt(meta.url)
      for (const body of ["17", "{", '{"text":"a","to":"b"}', '{"language":"en"}']) {
        expect(said(yield* channel.send(aMessage({ body })))).toEqual(["Refused", "payload_invalid"])
      }
      expect(meta.requests).toEqual([])
    })
  )

  it.live("goes to where the operator says the API is, below a path too, whatever network that is in", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start()
      const channel = yield* channelAt(`${meta.url}/proxy/graph/`)
      yield* channel.send(aMessage())
      expect(meta.requests.map(({ path }) => path)).toEqual([`/proxy/graph/v25.0/${phoneNumberId}/messages`])
    })
  )
})

/** What each of Meta's classes comes to. */
const consequences: Record<CodeClass, readonly [type: Reply["outcome"]["type"], more: object]> = {
  throttle: ["Deferred", { scope: "lane", afterMs: 1_000 }],
  pair: ["Deferred", { scope: "message", afterMs: 6_000 }],
  temporary: ["Unreachable", {}],
  wait: ["Deferred", { scope: "message", afterMs: 86_400_000 }],
  permanent: ["Refused", {}],
  account: ["Deferred", { scope: "circuit", afterMs: 1_000 }],
  standing: ["Deferred", { scope: "circuit", afterMs: 86_400_000 }]
}

/** As Meta documents its codes. */
const classes: Record<CodeClass, ReadonlyArray<number>> = {
  throttle: [4, 80007, 130429],
  pair: [131056],
  temporary: [2, 131000, 131016, 131057, 133004],
  wait: [131049],
  permanent: [
    ...[131026, 131021, 130472, 131047, 131050],
    ...[100, 131008, 131009, 131051, 131052, 131053],
    ...[132000, 132001, 132005, 132007, 132012, 132015, 132016, 132068, 132069, 135000]
  ],
  account: [0, 190, 3, 10, 200, 33, 368, 131005, 131031, 131042, 131045, 133000, 133006, 133010],
  standing: [131048]
}

describe("an error of Meta's", () => {
  it.live.each(Object.entries(classes) as ReadonlyArray<[CodeClass, ReadonlyArray<number>]>)(
    "of the class %s means the same by whichever of its codes",
    ([name, codes]) =>
      Effect.gen(function* () {
        const [type, more] = consequences[name]
        for (const code of codes) {
          const { reply } = yield* sendIn({ type: "refuses", code })
          expect(said(reply), String(code)).toEqual([type, `whatsapp_${code}`])
          expect(reply.outcome, String(code)).toMatchObject({
            ...more,
            status: expect.any(Number),
            error: { retryable: name !== "permanent" }
          })
          expect(JSON.parse(reply.responseBody!).error.code).toBe(code)
        }
      })
  )

  it("is covered for every code the stand-in knows", () => {
    expect(Object.values(classes).flat().toSorted()).toEqual(documentedCodes.toSorted())
  })

  it.live("counts by its code whatever the status, and says in facts only what Posthaste itself says", () =>
    Effect.gen(function* () {
      const details = "the recipient Jane Doe, +4915112345678, was told 4711"
      const { reply } = yield* sendIn({ type: "refuses", code: 131026, status: 500, details })
      expect(said(reply)).toEqual(["Refused", "whatsapp_131026"])
      expect(JSON.stringify(reply.outcome)).not.toContain("Jane Doe")
      expect(reply.responseBody).toContain("Jane Doe")
    })
  )

  it.live("about an object that is not there is about the account", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start()
      meta.register(number)
      const channel = yield* channelAt(meta.url, accountOf({ phoneNumberId: "1" }))
      const reply = yield* channel.send(aMessage())
      expect(JSON.parse(reply.responseBody!).error).toMatchObject({ code: 100, error_subcode: 33 })
      expect(reply.outcome).toMatchObject({ type: "Deferred", scope: "circuit" })
    })
  )

  it.live.each([
    [{ code: 9_999_999, status: 401 }, "Deferred"],
    [{ code: 9_999_999, status: 403 }, "Deferred"],
    [{ code: 9_999_999, status: 429 }, "Deferred"],
    [{ code: 9_999_999, status: 400 }, "Refused"],
    [{ code: 9_999_999, status: 400, isTransient: true }, "Unreachable"],
    [{ code: 9_999_999, status: 500 }, "Unreachable"],
    [{ code: 250, status: 400 }, "Deferred"]
  ] as const)("nobody has documented is judged by what else it says: %j", ([answer, type]) =>
    Effect.gen(function* () {
      const { reply } = yield* sendIn({ type: "refuses", ...answer })
      expect(reply.outcome.type).toBe(type)
    })
  )

  it.live("means what the operator says it means", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start({ mood: (_, n) => ({ type: "refuses", code: n === 0 ? 133004 : 77 }) })
      meta.register(number)
      const channel = yield* channelAt(meta.url, accountOf(), { codes: "133004=permanent, 77 = account" })
      expect(said(yield* channel.send(aMessage()))).toEqual(["Refused", "whatsapp_133004"])
      expect((yield* channel.send(aMessage())).outcome).toMatchObject({ type: "Deferred", scope: "circuit" })
    })
  )
})

describe("a throttle", () => {
  it.live("of a pair keeps this number's other recipients and is not asked again before its time", () =>
    Effect.gen(function* () {
      const { meta, channel } = yield* metaWith({ perPairMs: 60_000 })
      const send = (to: string) => channel.send(aMessage({ to }))
      expect(said(yield* send("4915100000001"))).toEqual(["Accepted", null])
      expect(said(yield* send("4915100000001"))).toEqual(["Deferred", "whatsapp_131056"])
      const third = yield* send("4915100000001")
      expect(said(third)).toEqual(["Deferred", "pair_throttled"])
      expect(third.outcome).toMatchObject({ scope: "message" })
      expect(said(yield* send("4915100000002"))).toEqual(["Accepted", null])
      expect(meta.requests).toHaveLength(3)
    })
  )

  it.live("of a number makes its lane wait, once for all that were under way", () =>
    Effect.gen(function* () {
      const { channel } = yield* metaWith({ perNumberPerSecond: 2 })
      const replies = yield* Effect.forEach(
        Array.from({ length: 6 }, (_, n) => aMessage({ to: `491510000000${n}` })),
        (message) => channel.send(message),
        { concurrency: "unbounded" }
      )
      const deferred = replies.map(({ outcome }) => outcome).filter(({ type }) => type === "Deferred")
      expect(deferred).toHaveLength(4)
      for (const outcome of deferred) {
        expect(outcome).toMatchObject({ scope: "lane", error: { code: "whatsapp_130429" } })
        expect((outcome as { afterMs: number }).afterMs).toBeLessThanOrEqual(1_000)
      }
    })
  )

  it.live("by something in front of Meta waits as long as that says", () =>
    Effect.gen(function* () {
      const headers = { "retry-after": "7" }
      const { reply } = yield* sendIn({ type: "babbles", status: 429, body: "slow down", taken: false, headers })
      expect(reply.outcome).toMatchObject({ type: "Deferred", scope: "lane", afterMs: 7_000 })
    })
  )
})

describe("a message that may have been taken", () => {
  const unreadable = ["", "OK", "[]", '{"messages":[]}', '{"messages":[{"id":17}]}', '{"messages":[{"id":""}]}', "{}"]
  const doubts: ReadonlyArray<[string, string, StandInMeta.Mood]> = [
    ["gets no answer within the deadline", "timeout", { type: "takesAndNeverAnswers" }],
    ["is answered after the deadline", "timeout", { type: "takesAndAnswersLate", afterMs: 2_000 }],
    ["meets a connection that breaks", "connection_failed", { type: "takesAndHangsUp" }],
    ...[500, 502, 503, 504].map((status): [string, string, StandInMeta.Mood] => [
      `is answered ${status} by a gateway`,
      `http_${status}`,
      { type: "babbles", status, body: "<html>Bad Gateway</html>", taken: true }
    ]),
    ["is answered with a redirect", "redirect", { type: "babbles", status: 302, body: "", taken: true }],
    ...unreadable.map((body): [string, string, StandInMeta.Mood] => [
      `is answered 200 with ${JSON.stringify(body)}`,
      "answer_unreadable",
      { type: "babbles", status: 200, body, taken: true }
    ])
  ]

  it.live.each(doubts)("is in doubt and not sent again when it %s", ([, code, mood]) =>
    Effect.gen(function* () {
      // Long enough for the request to arrive; what is answered is waited for.
      const { meta, reply } = yield* sendIn(mood, { timeoutMs: code === "timeout" ? 1_000 : 60_000 })
      expect(said(reply)).toEqual(["Unknown", code])
      expect(reply.outcome).toMatchObject({ reconcileAfterMs: 90_000 })
      expect(meta.sent).toHaveLength(1)
    })
  )

  it.live("keeps to the deadline", () =>
    Effect.gen(function* () {
      const { reply } = yield* sendIn({ type: "takesAndNeverAnswers" }, { timeoutMs: 150 })
      expect(reply.outcome.durationMs).toBeGreaterThanOrEqual(150)
      expect(reply.outcome.durationMs).toBeLessThan(20_000)
    })
  )

  it.live("waits for a receipt before anything is decided", () =>
    Effect.gen(function* () {
      const { channel } = yield* metaWith()
      expect(yield* channel.doubtMs(org, aMessage().destination)).toBe(90_000)
      expect(yield* channel.dedupes(org, aMessage().destination)).toBe(false)
    })
  )

  it.live("is left to a person when no receipt came, or sent again if its account says so", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start()
      const ask = (account: Account | Calling) =>
        Effect.flatMap(channelAt(meta.url, account), (channel) => channel.reconcile(aMessage()))
      const left = yield* ask(accountOf())
      expect(left.outcome).toMatchObject({
        type: "Unknown",
        reconcileAfterMs: null,
        error: { code: "outcome_unknown" }
      })
      const again = yield* ask(accountOf({ reconcile: { waitMs: 1, otherwise: "resend" } }))
      expect(said(again)).toEqual(["Unreachable", "no_receipt"])
      expect((yield* ask(() => Effect.succeed(null))).outcome).toMatchObject({ reconcileAfterMs: null })
      const away = yield* ask(() => Effect.fail(new StoreUnavailable({ cause: new Error("away") })))
      expect(away.outcome).toMatchObject({ type: "Unknown", reconcileAfterMs: 5_000 })
      expect(meta.requests).toEqual([])
    })
  )
})

describe("a message of which no byte was written", () => {
  it.live("because nobody listens may be tried again", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(receiver({}))
      const channel = yield* channelAt(`http://127.0.0.1:${gone.port}`)
      expect(said(yield* channel.send(aMessage()))).toEqual(["Unreachable", "connection_failed"])
    })
  )
})

describe("the access token", () => {
  it.live("goes to Meta and nowhere else, though Meta repeats it", () =>
    Effect.gen(function* () {
      const details = `Malformed access token ${token}`
      const { meta, reply } = yield* sendIn({ type: "refuses", code: 190, details })
      expect(meta.requests).toHaveLength(1)
      expect(reply.responseBody).toContain("Malformed access token ***")
      expect(JSON.stringify(reply)).not.toContain(token)
    })
  )

  it.live("that Meta does not know stops the account and not the message", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start()
      meta.register(number)
      const channel = yield* channelAt(meta.url, accountOf(), { accessToken: "expired" })
      expect((yield* channel.send(aMessage())).outcome).toMatchObject({
        type: "Deferred",
        scope: "circuit",
        status: 401,
        error: { code: "whatsapp_190" }
      })
    })
  )
})

describe("the WhatsApp channel", () => {
  it.live("takes as many at once as the account says, and does not hold up what goes nowhere", () =>
    Effect.gen(function* () {
      const url = "http://127.0.0.1:1"
      const capacity = (account: Account | Calling) =>
        Effect.flatMap(channelAt(url, account), (channel) => channel.capacity(org, aMessage().destination))
      expect(yield* capacity(accountOf())).toBe(7)
      expect(yield* capacity(() => Effect.succeed(null))).toBeGreaterThan(7)
      expect(yield* capacity(() => Effect.die("does not open"))).toBe(1)
    })
  )
})
