import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type ReceiptStatus, receiptBody, signatureOf } from "../../../../demo/meta/receipts.ts"
import { Destinations } from "../../../../src/application/ports/Destinations.ts"
import { receiveReceipts } from "../../../../src/application/receipts/receiveReceipts.ts"
import type { MessageFact } from "../../../../src/domain/message/facts.ts"
import { started } from "../../../domain/message/samples.ts"
import { start } from "../served.ts"

const posthaste = await start()
const { call, append, applyReceipts, logged, url } = posthaste
const PATH = "/api/v1/webhooks/whatsapp/inbound"
const APP_SECRET = "an-app-secret"

let numbers = 1_000
const account = async (org = "acme", settings: object = {}) => {
  const phoneNumberId = String(++numbers)
  const secrets = { accessToken: "a", appSecret: APP_SECRET, verifyToken: "hub", ...settings }
  const made = await call("POST", "/api/v1/whatsapp-accounts", { org, body: { phoneNumberId, ...secrets } })
  return { id: made.json["id"] as string, phoneNumberId, displayPhoneNumber: "15550783881", org }
}
type Account = Awaited<ReturnType<typeof account>>

/** A message that Meta has taken under the name. */
const sent = async ({ org, phoneNumberId }: Account, name = `wamid.${randomUUID()}`) => {
  const body = { channel: "whatsapp", to: "4915112345678", payloadJson: { text: "Hello", from: phoneNumberId } }
  const id: string = (await call("POST", "/api/v1/outbound/messages", { org, body })).json["id"]
  const taken: MessageFact = {
    type: "AttemptSucceeded",
    attempt: 1,
    status: 200,
    providerMessageId: name,
    durationMs: 3
  }
  await append(id, [started(1), taken])
  return { id, name, org }
}
type Sent = Awaited<ReturnType<typeof sent>>

const update = ({ name }: Sent, status: ReceiptStatus = "delivered") => ({
  ...{ id: name, status, to: "4915112345678", callbackData: null, at: 1_750_030_073 }
})
const bodyOf = (from: Account, ...about: ReadonlyArray<Sent>) =>
  receiptBody(
    from,
    about.map((one) => update(one))
  )

/** Tells it as Meta does; `signature` null sends none. */
const tell = async (
  body: string | Uint8Array<ArrayBuffer>,
  { signature, headers = {} }: { signature?: string | null; headers?: Record<string, string> } = {}
) => {
  const signed = signature === undefined ? signatureOf(APP_SECRET, String(body)) : signature
  const response = await fetch(`${url}${PATH}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(signed === null ? {} : { "x-hub-signature-256": signed }),
      ...headers
    },
    body
  })
  const text = await response.text()
  return { status: response.status, text, type: response.headers.get("content-type") }
}

const waiting = async (org = "acme") =>
  (await call("GET", "/api/v1/outbound/stats", { org })).json["receipts"] as { waiting: number; parked: number }
const nothing = { waiting: 0, parked: 0 }
const statusOf = async ({ id, org }: Sent) =>
  (await call("GET", `/api/v1/outbound/messages/${id}`, { org })).json["status"] as string
const since = (from: number) => logged.slice(from).join("\n")

describe("Meta's question", () => {
  const ask = (query: Record<string, string>) =>
    call("GET", `${PATH}?${new URLSearchParams(query)}`, { key: null, org: null })
  const right = { "hub.mode": "subscribe", "hub.verify_token": "hub", "hub.challenge": "1158201444" }

  it("is answered with its challenge, as text, when it knows the verify token of an account", async () => {
    await account()
    const answer = await ask(right)
    expect([answer.status, answer.text]).toEqual([200, "1158201444"])
    expect(answer.headers.get("content-type")).toMatch(/^text\/plain/)
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
    expect((await ask({ ...right, "hub.news": "1" })).status).toBe(200)
  })

  it("is refused, without its challenge, when it does not", async () => {
    const { "hub.verify_token": _, ...without } = right
    for (const query of [
      ...[without, {}, { ...right, "hub.verify_token": "hub2" }, { ...right, "hub.verify_token": "" }],
      ...[
        { ...right, "hub.mode": "unsubscribe" },
        { ...right, "hub.verify_token": "HUB" }
      ]
    ]) {
      const answer = await ask(query)
      expect(answer.status).toBe(403)
      expect(answer.headers.get("content-type")).toBe("application/problem+json")
      expect(answer.text).not.toContain("1158201444")
    }
  })
})

describe("a notice from Meta", () => {
  it("that is signed is kept, answered, and applied", async () => {
    const from = await account()
    const message = await sent(from)
    const answer = await tell(bodyOf(from, message))
    expect([answer.status, answer.text]).toEqual([200, ""])
    expect(await waiting()).toEqual({ waiting: 1, parked: 0 })
    await applyReceipts()
    expect(await statusOf(message)).toBe("DELIVERED")
    expect(await waiting()).toEqual(nothing)
  })

  it("is checked as it was escaped: an emoji, a slash and a letter beyond ASCII", async () => {
    const from = { ...(await account()), displayPhoneNumber: "ä/👋" }
    const message = await sent(from)
    const body = bodyOf(from, message)
    expect(body).toContain(String.raw`\u00e4\/\ud83d\udc4b`)
    // The same JSON in other bytes is not what was signed.
    expect((await tell(JSON.stringify(JSON.parse(body)), { signature: signatureOf(APP_SECRET, body) })).status).toBe(
      401
    )
    expect((await tell(body)).status).toBe(200)
    // Nor does it matter how it is written, as long as it was signed so.
    expect((await tell(JSON.stringify(JSON.parse(body), null, 2))).status).toBe(200)
    await applyReceipts()
    expect(await statusOf(message)).toBe("DELIVERED")
  })

  it("that is not signed, or with another secret, or by another number's, is refused and nothing of it is kept", async () => {
    const from = await account()
    const other = await account("globex", { appSecret: "another-app-secret" })
    const message = await sent(from)
    const body = bodyOf(from, message)
    const before = logged.length
    for (const signature of [
      ...[null, "", "sha256=", signatureOf("wrong", body), signatureOf("another-app-secret", body)],
      ...[signatureOf(APP_SECRET, body).toUpperCase(), signatureOf(APP_SECRET, body).slice("sha256=".length)],
      signatureOf(APP_SECRET, `${body} `)
    ]) {
      const answer = await tell(body, { signature })
      expect([answer.status, answer.type]).toEqual([401, "application/problem+json"])
    }
    // Signed with the secret of a number that it does not name.
    expect((await tell(bodyOf({ ...from, phoneNumberId: "404" }, message))).status).toBe(401)
    expect((await tell(bodyOf(other, message))).status).toBe(401)
    expect(await waiting()).toEqual(nothing)
    expect(await waiting("globex")).toEqual(nothing)
    expect(await statusOf(message)).toBe("SENT")
    expect(since(before)).not.toContain(APP_SECRET)
  })

  it("with any byte flipped is refused, and nothing of it is kept", async () => {
    const from = await account()
    const body = bodyOf(from, await sent(from))
    const signature = signatureOf(APP_SECRET, body)
    const bytes = new TextEncoder().encode(body)
    for (let at = 0; at < bytes.length; at++) {
      const answer = await tell(bytes.with(at, bytes[at]! ^ (1 << (at % 8))), { signature })
      expect([at, answer.status]).toEqual([at, 401])
    }
    expect(await waiting()).toEqual(nothing)
  })

  it("about several numbers is believed about those whose secret signed it, and about no other", async () => {
    const [one, two] = [await account(), await account()]
    const stranger = await account("globex", { appSecret: "another-app-secret" })
    const messages = [await sent(one), await sent(two), await sent(stranger)] as const
    const parts = [one, two, stranger].map((from, index) => JSON.parse(bodyOf(from, messages[index]!)).entry[0])
    const unknown = JSON.parse(bodyOf({ ...one, phoneNumberId: "404" }, messages[0])).entry[0]
    const body = JSON.stringify({ object: "whatsapp_business_account", entry: [parts[2], unknown, parts[0], parts[1]] })
    const before = logged.length
    expect((await tell(body)).status).toBe(200)
    await applyReceipts()
    expect(await Promise.all(messages.map(statusOf))).toEqual(["DELIVERED", "DELIVERED", "SENT"])
    expect(await waiting("globex")).toEqual(nothing)
    expect(since(before)).toContain(`numbers ${stranger.phoneNumberId}, 404 skipped: no account is proven`)
  })

  it("has all its numbers looked up in one statement, and none while it is not signed", async () => {
    const from = await Promise.all(Array.from({ length: 120 }, () => account()))
    const messages = await Promise.all(from.map((one) => sent(one)))
    const entry = from.flatMap((one, index) => JSON.parse(bodyOf(one, messages[index]!)).entry)
    const body = JSON.stringify({ entry })
    const asked: Array<number> = []
    const answer = await posthaste.run(
      Effect.gen(function* () {
        const destinations = yield* Destinations
        const withPublicKeys: typeof destinations.withPublicKeys = (channel, keys) => {
          asked.push(keys.length)
          return destinations.withPublicKeys(channel, keys)
        }
        return yield* Effect.provideService(
          receiveReceipts({ body: Buffer.from(body), signature: signatureOf(APP_SECRET, body), org: null }),
          Destinations,
          { ...destinations, withPublicKeys }
        )
      })
    )
    expect([answer.type, asked]).toEqual(["Taken", [120]])
    await applyReceipts()
    expect(new Set(await Promise.all(messages.map(statusOf)))).toEqual(new Set(["DELIVERED"]))
  })

  it("has few secrets tried: numbers of one app share theirs", async () => {
    const strangers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => account("globex", { appSecret: `another-app-secret-${n}` }))
    )
    const from = await account()
    const message = await sent(from)
    const entryOf = (one: Account) =>
      JSON.parse(bodyOf({ ...from, phoneNumberId: one.phoneNumberId }, message)).entry[0]
    const crowd = strangers.map(entryOf)
    const told = async (entry: ReadonlyArray<unknown>) => (await tell(JSON.stringify({ entry }))).status
    expect([await told([...crowd.slice(1), entryOf(from)]), await told([...crowd, entryOf(from)])]).toEqual([200, 401])
    await applyReceipts()
  })

  it("that nothing proves costs no line of the log: such notices are counted, and told once a minute", async () => {
    const from = await account()
    const before = logged.length
    for (let n = 0; n < 20; n++) expect((await tell(bodyOf(from), { signature: null })).status).toBe(401)
    expect(since(before)).toBe("")
    const other = await start()
    await fetch(`${other.url}${PATH}`, { method: "POST", body: "{}" })
    await fetch(`${other.url}${PATH}`, { method: "POST", body: "{}", headers: { "x-hub-signature-256": "sha256=0" } })
    await other.stop()
    expect(other.logged.map((line) => line.trim())).toEqual([
      "2 notices from WhatsApp were refused, the last one because it names no phone number"
    ])
  })

  it("goes to the account's org; what X-Org-Id names otherwise is skipped and told", async () => {
    const from = await account("globex")
    const message = await sent(from)
    const body = bodyOf(from, message)
    for (const org of ["acme", "no org at all", ""]) {
      const before = logged.length
      expect((await tell(body, { headers: { "x-org-id": org } })).status).toBe(200)
      expect(since(before)).toContain("X-Org-Id names another org")
    }
    expect([await waiting("globex"), await waiting("acme")]).toEqual([nothing, nothing])
    expect((await tell(body, { headers: { "x-org-id": "globex" } })).status).toBe(200)
    await applyReceipts()
    expect(await statusOf(message)).toBe("DELIVERED")
  })

  it("can't speak about another org's message, by Meta's name or by ours", async () => {
    const [mine, theirs] = [await account("acme"), await account("globex")]
    const message = await sent(theirs)
    const named = { ...update(message, "failed"), callbackData: null }
    const ours = { ...named, id: "wamid.made-up", callbackData: `posthaste1.${message.id}.1.1` }
    const before = logged.length
    expect((await tell(receiptBody(mine, [named, ours]))).status).toBe(200)
    await applyReceipts()
    expect(await statusOf(message)).toBe("SENT")
    expect(since(before).match(/another org's/g)).toHaveLength(2)
  })

  it("about what is said to us is taken and left at that", async () => {
    const from = await account()
    const { value } = JSON.parse(bodyOf(from)).entry[0].changes[0]
    const messages = [{ from: "4915112345678", id: "wamid.in", type: "text", text: { body: "STOP" } }]
    const body = JSON.stringify({ entry: [{ changes: [{ value: { ...value, statuses: undefined, messages } }] }] })
    expect((await tell(body)).status).toBe(200)
    expect(await waiting()).toEqual(nothing)
    expect(logged.join("\n")).not.toContain("STOP")
  })

  it("that is proven and can't be read says why; what is too large is not read at all", async () => {
    const from = await account()
    const named = `"phone_number_id":"${from.phoneNumberId}"`
    for (const [body, reason] of [
      [`{${named}`, "not valid JSON"],
      [`{${named}}`, "no list entry"],
      [`[{${named}}]`, "no list entry"]
    ] as const) {
      const answer = await tell(body)
      expect([answer.status, answer.type]).toEqual([400, "application/problem+json"])
      expect(answer.text).toContain(reason)
    }
    expect((await tell(`{${named}}${" ".repeat(256 * 1024)}`)).status).toBe(413)
    expect((await tell(`{${named}}`, { headers: { "content-encoding": "gzip" } })).status).toBe(415)
    expect((await tell("")).status).toBe(401)
    expect((await tell("hello")).status).toBe(401)
  })

  it("of 400 statuses, 10 of them broken, applies the other 390, once", async () => {
    const from = await account()
    const messages = await Promise.all(Array.from({ length: 130 }, () => sent(from)))
    const said = ["sent", "read", "delivered"] as const
    const ours = ({ id }: Sent) => ({ callbackData: `posthaste1.${id}.1.1` })
    const good = said.flatMap((status) => messages.map((one) => ({ ...update(one, status), ...ours(one) })))
    const body = JSON.parse(receiptBody(from, good))
    const { statuses } = body.entry[0].changes[0].value
    const broken = [null, 7, "text", [], {}, { id: 1 }, { ...statuses[0], status: "deleted" }]
    const alsoBroken = [{ ...statuses[1], timestamp: "now" }, { ...statuses[2], id: null }, { status: "sent" }]
    for (const [index, one] of [...broken, ...alsoBroken].entries()) statuses.splice(index * 39, 0, one)
    expect(statuses).toHaveLength(400)
    const before = logged.length
    for (let repeated = 0; repeated < 2; repeated++) {
      expect((await tell(JSON.stringify(body))).status).toBe(200)
      while ((await applyReceipts()) > 0);
    }
    expect(since(before).match(/was skipped/g)).toHaveLength(20)
    for (const { id } of messages) {
      const { items } = (await call("GET", `/api/v1/outbound/messages/${id}/events`)).json
      const recorded = items.filter(({ type }: { type: string }) => type === "ReceiptRecorded")
      expect(recorded.map(({ data }: { data: { receipt: string } }) => data.receipt)).toEqual(said)
    }
    expect(await waiting()).toEqual(nothing)
  })
})

describe("an account with verifySignature: false", () => {
  it("believes any signature; the others do not, and without one none does", async () => {
    const open = await account("acme", { verifySignature: false })
    const closed = await account("acme")
    const [believed, doubted] = [await sent(open), await sent(closed)]
    const signature = "sha256=0"
    expect((await tell(bodyOf(open, believed), { signature })).status).toBe(200)
    expect((await tell(bodyOf(open, believed), { signature: null })).status).toBe(401)
    expect((await tell(bodyOf(closed, doubted), { signature })).status).toBe(401)
    const both = [bodyOf(closed, doubted), bodyOf(open, believed)].map((body) => JSON.parse(body).entry[0])
    expect((await tell(JSON.stringify({ entry: both }), { signature })).status).toBe(200)
    await applyReceipts()
    expect(await statusOf(believed)).toBe("DELIVERED")
    expect(await statusOf(doubted)).toBe("SENT")
  })
})
