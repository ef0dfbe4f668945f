import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as StandInMeta from "../../demo/meta/StandInMeta.ts"

const number = { phoneNumberId: "1001", accessToken: "EAAG", displayPhoneNumber: "15550783881", webhook: null }
const templates = [{ name: "order_paid", language: "en_US", parameters: 1 }]
const text = { messaging_product: "whatsapp", to: "4915112345678", type: "text", text: { body: "Hello" } }
const template = (change: object = {}) => ({
  messaging_product: "whatsapp",
  to: "4915112345678",
  type: "template",
  template: {
    name: "order_paid",
    language: { code: "en_US" },
    components: [{ type: "body", parameters: [{ type: "text", text: "4711" }] }],
    ...change
  }
})

interface Call {
  readonly path?: string
  readonly token?: string | null
  readonly type?: string
}

const post = (url: string, body: unknown, { path = "/v25.0/1001/messages", token = "EAAG", type }: Call = {}) =>
  Effect.promise(async () => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        "content-type": type ?? "application/json",
        ...(token === null ? {} : { authorization: `Bearer ${token}` })
      },
      body: typeof body === "string" ? body : JSON.stringify(body)
    })
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
    return { status: response.status, json: (await response.json()) as any }
  })

/** Somebody who receives what Meta sends, and how it was signed. */
const listener = Effect.acquireRelease(
  Effect.promise(async () => {
    const got: Array<{ readonly body: Buffer; readonly signature: string }> = []
    const server = createServer((request, response) => {
      const challenge = new URL(request.url!, "http://x").searchParams
      if (request.method === "GET") {
        const isKnown = challenge.get("hub.mode") === "subscribe" && challenge.get("hub.verify_token") === "hub"
        response.writeHead(isKnown ? 200 : 403).end(isKnown ? challenge.get("hub.challenge") : "")
        return
      }
      const chunks: Array<Buffer> = []
      request.on("data", (chunk) => chunks.push(chunk))
      request.on("end", () => {
        got.push({ body: Buffer.concat(chunks), signature: String(request.headers["x-hub-signature-256"]) })
        response.end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, got, server }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

const withListener = (options: StandInMeta.Options) =>
  Effect.gen(function* () {
    const { url, got } = yield* listener
    const meta = yield* StandInMeta.start(options)
    meta.register({ ...number, webhook: { url, appSecret: "app", verifyToken: "hub" } })
    const statuses = () =>
      got.flatMap(({ body }) =>
        JSON.parse(body.toString()).entry[0].changes[0].value.statuses.map((one: { status: string }) => one.status)
      )
    return { meta, got, statuses }
  })

const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (isSo() ? Effect.void : Effect.andThen(Effect.sleep("5 millis"), until(isSo))))

describe("the stand-in for Meta", () => {
  it.live("takes a message as Meta documents it, and answers with its id", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start({ templates })
      meta.register(number)
      for (const body of [text, template(), { ...text, biz_opaque_callback_data: "x".repeat(512) }]) {
        const { status, json } = yield* post(meta.url, body)
        expect(status).toBe(200)
        expect(json).toMatchObject({ messaging_product: "whatsapp", contacts: [{ wa_id: "4915112345678" }] })
        expect(json.messages[0].id).toBe(meta.sent.at(-1)!.id)
      }
    })
  )

  it.live("refuses what Meta refuses, in Meta's words and codes", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start({ templates })
      meta.register(number)
      const components = [{ type: "body", parameters: [] }]
      const refusals: ReadonlyArray<readonly [unknown, number, number, Call?]> = [
        [text, 401, 190, { token: null }],
        [text, 401, 190, { token: "other" }],
        [text, 400, 100, { path: "/v25.0/1002/messages" }],
        [text, 400, 2500, { path: "/1001/messages" }],
        ["{", 400, 100],
        [text, 400, 100, { type: "text/plain" }],
        [{ ...text, messaging_product: undefined }, 400, 100],
        [{ ...text, to: undefined }, 400, 100],
        [{ ...text, to: "me" }, 400, 131009],
        [{ ...text, to: number.displayPhoneNumber }, 400, 131021],
        [{ ...text, type: "fax" }, 400, 131051],
        [{ ...text, text: {} }, 400, 100],
        [{ ...text, text: { body: "x".repeat(4097) } }, 400, 100],
        [{ ...text, from: "1001" }, 400, 100],
        [{ ...text, biz_opaque_callback_data: "x".repeat(513) }, 400, 131009],
        [template({ name: undefined }), 400, 131008],
        [template({ language: "en_US" }), 400, 131008],
        [template({ name: "unknown" }), 404, 132001],
        [template({ language: { code: "de" } }), 404, 132001],
        [template({ components }), 400, 132000],
        [template({ components: [{ type: "body", parameters: ["4711"] }] }), 400, 132012]
      ]
      for (const [body, status, code, call] of refusals) {
        const answer = yield* post(meta.url, body, call)
        expect([answer.status, answer.json.error.code], JSON.stringify(body)).toEqual([status, code])
        expect(answer.json.error).toMatchObject({ message: expect.any(String), fbtrace_id: expect.any(String) })
      }
      expect(meta.sent).toEqual([])
    })
  )

  it.live("throttles a number and a pair when told to", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start({ perNumberPerSecond: 2, perPairMs: 60_000 })
      meta.register(number)
      const codes: Array<number | undefined> = []
      for (const to of ["4915100000001", "4915100000001", "4915100000002", "4915100000003"]) {
        codes.push((yield* post(meta.url, { ...text, to })).json.error?.code)
      }
      expect(codes).toEqual([undefined, 131056, undefined, 130429])
    })
  )

  it.live("signs a receipt over the very bytes it sends, which are ASCII", () =>
    Effect.gen(function* () {
      const { meta, got } = yield* withListener({})
      yield* post(meta.url, { ...text, biz_opaque_callback_data: "Åse/🐎" })
      const told = yield* meta.tell("1001", [
        meta.update(meta.sent[0]!, "sent"),
        meta.update(meta.sent[0]!, "failed", 131026)
      ])
      expect(told.status).toBe(200)
      const [{ body, signature }] = got as [(typeof got)[number]]
      const expected = `sha256=${createHmac("sha256", "app").update(body).digest("hex")}`
      expect(timingSafeEqual(Buffer.from(signature), Buffer.from(expected))).toBe(true)
      expect(body.toString("latin1")).toContain("\\u00c5se\\/\\ud83d\\udc0e")
      expect(body.every((byte) => byte < 128)).toBe(true)
      const { metadata, statuses } = JSON.parse(body.toString()).entry[0].changes[0].value
      expect(metadata.phone_number_id).toBe("1001")
      expect(statuses).toMatchObject([
        { id: meta.sent[0]!.id, status: "sent", biz_opaque_callback_data: "Åse/🐎" },
        { id: meta.sent[0]!.id, status: "failed", errors: [{ code: 131026 }] }
      ])
    })
  )

  it.live("sends receipts late, twice, in any order, in one request or never, as it is told", () =>
    Effect.gen(function* () {
      const plans: Array<StandInMeta.ReceiptPlan | null> = [
        { statuses: ["read", "sent", "sent"], afterMs: 30, everyMs: 10 },
        { statuses: ["sent", "delivered"], everyMs: null },
        null
      ]
      const { meta, got, statuses } = yield* withListener({ receipts: () => plans.shift()! })
      yield* post(meta.url, text)
      yield* until(() => statuses().length === 3)
      expect(statuses()).toEqual(["read", "sent", "sent"])
      expect(got).toHaveLength(3)
      yield* post(meta.url, text)
      yield* post(meta.url, text)
      yield* until(() => statuses().length === 5)
      expect(got).toHaveLength(4)
    })
  )

  it.live("asks a webhook to prove itself", () =>
    Effect.gen(function* () {
      const { meta } = yield* withListener({})
      expect(yield* meta.subscribe("1001")).toBe(true)
      const { url } = yield* listener
      meta.register({ ...number, webhook: { url, appSecret: "app", verifyToken: "other" } })
      expect(yield* meta.subscribe("1001")).toBe(false)
      expect(yield* meta.subscribe("1002")).toBe(false)
    })
  )
})
