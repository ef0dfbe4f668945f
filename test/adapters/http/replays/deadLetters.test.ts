import { beforeAll, describe, expect, it } from "vitest"
import {
  deadLettered,
  failed,
  gone,
  noonPlus,
  received,
  refusedForGood,
  started
} from "../../../domain/message/samples.ts"
import { field, start } from "../served.ts"

const posthaste = await start()
const { call, send, append, bodyOf, project } = posthaste
let to: string
let other: string
beforeAll(async () => {
  to = await posthaste.endpoint("acme", { url: "https://user:secret@shop.example/hook?token=secret" })
  other = await posthaste.endpoint()
})

const refused = [failed(1, null, { error: gone, status: 410 }), refusedForGood("response")]
const once = { strategy: "fixed", baseMs: 0, attemptsMax: 1 }

/** A dead letter: refused for good, unless its attempts are to be used up. */
const dead = async (fields: object = {}, ending = refused): Promise<string> => {
  const { json } = await send({ channel: "webhook", to, payloadJson: { order: 1 }, ...fields })
  await append(json["id"], [started(1), ...ending])
  await project()
  return json["id"]
}
const deadLetters = (query = "") => call("GET", `/api/v1/dead-letters${query}`)
const replay = (body: unknown) => call("POST", "/api/v1/dead-letters/replay", { body })
const get = (id: string, rest = "") => call("GET", `/api/v1/outbound/messages/${id}${rest}`)
const ids = (answer: { json: { [field: string]: unknown } }) =>
  (answer.json["items"] as ReadonlyArray<{ id: string }>).map(({ id }) => id)

describe("the dead letters", () => {
  it("are messages with when they died and what a replay would do", async () => {
    const id = await dead()
    const answer = await deadLetters(`?to=${to}`)
    expect(answer.status).toBe(200)
    const message = (await get(id)).json
    expect(answer.json).toMatchObject({
      items: [
        {
          ...message,
          deadLetteredAt: message["updatedAt"],
          contradicted: false,
          wouldReplayTo: {
            destination: to,
            url: "https://shop.example/hook",
            exists: true,
            paused: false,
            hasBody: true,
            attemptsMax: 6,
            retry: { strategy: "schedule", waitsMs: [1_000, 5_000, 15_000, 60_000, 300_000] }
          }
        }
      ],
      nextCursor: null
    })
  })

  it("can be searched by destination, channel, error and time, a page at a time", async () => {
    const first = await dead({ to: other })
    const second = await dead({ to: other, retry: once }, [failed(1, null), deadLettered()])
    expect(ids(await deadLetters(`?to=${other}`)).toSorted()).toEqual([first, second].toSorted())
    expect(ids(await deadLetters(`?to=${other}&errorCode=http_503`))).toEqual([second])
    expect(ids(await deadLetters(`?to=${other}&channel=http`))).toEqual([])
    expect(ids(await deadLetters(`?to=${other}&before=2020-01-01T00:00:00Z`))).toEqual([])
    expect(ids(await deadLetters(`?to=${other}&after=2020-01-01T00:00:00Z`))).toHaveLength(2)
    const page = await deadLetters(`?to=${other}&limit=1`)
    const rest = await deadLetters(`?to=${other}&limit=1&cursor=${page.json["nextCursor"]}`)
    expect([...ids(page), ...ids(rest)].toSorted()).toEqual([first, second].toSorted())
    expect(rest.json["nextCursor"]).toBeNull()
  })

  it("refuse a filter they do not know", async () => {
    const answer = await deadLetters("?destination=x&before=yesterday")
    expect(answer.status).toBe(400)
    expect(field(answer)).toEqual(expect.arrayContaining(["destination", "before"]))
  })

  it("know HTTP targets as well as endpoints, and that one is paused", async () => {
    const target = await call("POST", "/api/v1/http-targets", { body: { url: "https://psp.example/pay?key=secret" } })
    const paid = await dead({ channel: "http", to: target.json["id"] })
    expect((await deadLetters("?channel=http")).json["items"]).toMatchObject([
      { id: paid, wouldReplayTo: { url: "https://psp.example/pay", exists: true, paused: false } }
    ])
    const to = await posthaste.endpoint()
    await dead({ to })
    await call("POST", `/api/v1/webhook-endpoints/${to}/pause`)
    expect((await deadLetters(`?to=${to}`)).json["items"]).toMatchObject([{ wouldReplayTo: { paused: true } }])
  })

  it("say when their endpoint is gone, their body erased or their ending contradicted", async () => {
    const to = await posthaste.endpoint()
    const id = await dead({ to })
    await append(id, [received("delivered", { contradicts: true })])
    await call("POST", `/api/v1/outbound/messages/${id}/erase`)
    await call("DELETE", `/api/v1/webhook-endpoints/${to}`)
    expect((await deadLetters(`?to=${to}`)).json["items"]).toMatchObject([
      { id, contradicted: true, wouldReplayTo: { destination: to, url: null, exists: false, hasBody: false } }
    ])
  })

  it("are not shown any more once they are replayed, even before the projection knows", async () => {
    const to = await posthaste.endpoint()
    const id = await dead({ to })
    await call("POST", `/api/v1/outbound/messages/${id}/replay`)
    expect(ids(await deadLetters(`?to=${to}`))).toEqual([])
  })

  it("of another org are not shown", async () => {
    await dead()
    expect((await call("GET", "/api/v1/dead-letters", { org: "globex" })).json).toMatchObject({
      items: [],
      nextCursor: null
    })
  })
})

describe("a replay of dead letters", () => {
  it("can be previewed", async () => {
    const to = await posthaste.endpoint()
    await dead({ to })
    const answer = await replay({ filter: { to }, preview: true })
    expect([answer.status, answer.json]).toEqual([200, { matched: 1, contradicted: 0 }])
    expect(ids(await deadLetters(`?to=${to}`))).toHaveLength(1)
  })

  it("is answered with 202 and can be watched, listed and cancelled", async () => {
    const to = await posthaste.endpoint()
    await dead({ to })
    const answer = await replay({ filter: { to, after: "2020-01-01T00:00:00Z" }, reason: "back" })
    expect(answer.status).toBe(202)
    const { id } = answer.json as { id: string }
    expect(answer.headers.get("location")).toBe(`/api/v1/replays/${id}`)
    expect(answer.json).toMatchObject({
      status: "RUNNING",
      matched: 1,
      replayed: 0,
      skipped: 0,
      filter: { to, after: "2020-01-01T00:00:00.000Z" },
      ids: null,
      reason: "back",
      endedAt: null
    })
    expect((await call("GET", `/api/v1/replays/${id}`)).json).toMatchObject({
      ...answer.json,
      outcome: { arrived: 0, sent: 0, failed: 0, waiting: 0, ended: 0 }
    })
    expect((await call("GET", "/api/v1/replays?limit=1")).json["items"]).toEqual([answer.json])
    const cancelled = await call("POST", `/api/v1/replays/${id}/cancel`)
    expect(cancelled.json).toMatchObject({ id, status: "CANCELLED" })
    expect(cancelled.json["endedAt"]).not.toBeNull()
  })

  it("can dismiss, send elsewhere, or cancel what waits, each a job of its own", async () => {
    const [to, other] = [await posthaste.endpoint(), await posthaste.endpoint()]
    const id = await dead({ to })
    const dismissal = await call("POST", "/api/v1/dead-letters/dismiss", { body: { ids: [id], reason: "seen" } })
    expect([dismissal.status, dismissal.json]).toMatchObject([
      202,
      { does: "dismiss", matched: 1, ids: [id], to: null }
    ])
    const read = await call("GET", `/api/v1/replays/${dismissal.json["id"]}`)
    expect(read.json["outcome"]).toBeNull()
    expect((await replay({ filter: { to }, to: other })).json).toMatchObject({ does: "send", to: other })
    const waiting = { filter: { to: other }, reason: "closed" }
    const cancellation = await call("POST", "/api/v1/outbound/messages/cancel", { body: waiting })
    expect([cancellation.status, cancellation.json]).toMatchObject([
      202,
      { does: "cancel", waiting: { to: other }, filter: null, ids: null, missed: null }
    ])
    const count = await call("POST", "/api/v1/dead-letters/dismiss", { body: { filter: {}, preview: true } })
    expect([count.status, Object.keys(count.json)]).toEqual([200, ["matched", "contradicted"]])
  })

  it("is refused where nobody could mean it", async () => {
    const wrong = async (path: string, body: object) => (await call("POST", path, { body })).json["errors"][0].field
    expect(await wrong("/api/v1/dead-letters/replay", { filter: {}, to: "nowhere" })).toBe("to")
    expect(await wrong("/api/v1/dead-letters/replay", { filter: {}, to: crypto.randomUUID() })).toBe("to")
    expect(await wrong("/api/v1/dead-letters/dismiss", {})).toBe("filter")
    expect(await wrong("/api/v1/outbound/messages/cancel", {})).toBe("filter")
    expect(await wrong("/api/v1/outbound/messages/cancel", { filter: { colour: "red" } })).toContain("colour")
  })

  it("can name its messages", async () => {
    const id = await dead()
    const answer = await replay({ ids: [id] })
    expect(answer.json).toMatchObject({ matched: 1, filter: null, ids: [id] })
  })

  it("of nothing is over at once, and what is over can't be cancelled", async () => {
    const { json } = await replay({ filter: { errorCode: "never" } })
    expect(json).toMatchObject({ matched: 0, status: "COMPLETED" })
    const answer = await call("POST", `/api/v1/replays/${json["id"]}/cancel`)
    expect([answer.status, answer.json["type"]]).toEqual([409, "urn:posthaste:problem:command-refused"])
  })

  it("is one under one key, and another request under that key is refused", async () => {
    const id = await dead()
    const first = await replay({ ids: [id], idempotencyKey: "once" })
    const again = await replay({ ids: [id], idempotencyKey: "once" })
    expect([again.status, again.json["id"]]).toEqual([202, first.json["id"]])
    expect((await replay({ filter: {}, idempotencyKey: "once" })).status).toBe(409)
  })

  it.each([
    ["neither filter nor ids", {}, "filter"],
    ["both", { filter: {}, ids: ["0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"] }, "filter"],
    ["no ids", { ids: [] }, "ids"],
    ["what is no id", { ids: ["x"] }, "ids[0]"],
    ["an unknown filter", { filter: { destination: "x" } }, "filter.destination"],
    ["an unknown field", { filter: {}, dryRun: true }, "dryRun"]
  ])("refuses %s by name", async (_, body, name) => {
    const answer = await replay(body)
    expect(answer.status).toBe(400)
    expect(field(answer)).toContain(name)
  })

  it("is not found by another org, nor by an id that is none", async () => {
    const { json } = await replay({ filter: {} })
    for (const path of [`/api/v1/replays/${json["id"]}`, "/api/v1/replays/x"]) {
      expect((await call("GET", path, { org: "globex" })).status).toBe(404)
      expect((await call("POST", `${path}/cancel`, { org: "globex" })).status).toBe(404)
    }
  })
})

describe("a single replay", () => {
  it("may bring another body, delivered as it was written and recorded as edited", async () => {
    const id = await dead()
    const body = '{"payloadJson": {"n": 12345678901234567890, "price": 1.10}, "reason": "wrong price"}'
    const answer = await call("POST", `/api/v1/outbound/messages/${id}/replay`, { body })
    expect(answer.json).toMatchObject({ status: "QUEUED", epoch: 2 })
    expect(await bodyOf(id)).toBe('{"n": 12345678901234567890, "price": 1.10}')
    const events = (await get(id, "/events")).json["items"] as ReadonlyArray<{ type: string; data: object }>
    expect(events.at(-1)).toMatchObject({ type: "MessageReplayed", data: { edited: true, reason: "wrong price" } })
  })

  it("may bring null for a body", async () => {
    const id = await dead()
    await call("POST", `/api/v1/outbound/messages/${id}/replay`, { body: { payloadJson: null } })
    expect(await bodyOf(id)).toBe("null")
  })

  it("without one sends what was sent before", async () => {
    const id = await dead()
    await call("POST", `/api/v1/outbound/messages/${id}/replay`, { body: { reason: "again" } })
    expect(await bodyOf(id)).toBe('{"order":1}')
    const events = (await get(id, "/events")).json["items"] as ReadonlyArray<{ data: object }>
    expect(events.at(-1)).toMatchObject({ data: { edited: false, replayId: null } })
  })
})

describe("an erasure", () => {
  it("removes the body and the answers, keeps the facts, and may be repeated", async () => {
    const { json } = await send({ channel: "webhook", to, payloadJson: { card: 1 } })
    const id = json["id"] as string
    await append(id, [started(1)])
    await append(id, [failed(1, noonPlus(0))], "card 1 refused")
    for (const reason of ["asked to", "asked again"]) {
      const answer = await call("POST", `/api/v1/outbound/messages/${id}/erase`, { body: { reason } })
      expect([answer.status, answer.json["status"]]).toEqual([200, "QUEUED"])
    }
    expect(await bodyOf(id)).toBeNull()
    expect((await get(id, "/attempts")).json["items"]).toMatchObject([{ response: { status: 503, body: null } }])
    const events = (await get(id, "/events")).json["items"] as ReadonlyArray<object>
    expect(events).toHaveLength(4)
    expect(events.at(-1)).toMatchObject({ type: "MessageBodyErased", data: { reason: "asked to" }, status: "QUEUED" })
  })

  it("leaves nothing to replay but another body", async () => {
    const id = await dead()
    await call("POST", `/api/v1/outbound/messages/${id}/erase`)
    const refused = await call("POST", `/api/v1/outbound/messages/${id}/replay`)
    expect([refused.status, refused.json["detail"]]).toEqual([409, expect.stringContaining("payloadJson")])
    const answer = await call("POST", `/api/v1/outbound/messages/${id}/replay`, { body: { payloadJson: 1 } })
    expect(answer.status).toBe(200)
  })

  it("does not find a message of another org", async () => {
    const id = await dead()
    expect((await call("POST", `/api/v1/outbound/messages/${id}/erase`, { org: "globex" })).status).toBe(404)
    expect(await bodyOf(id)).not.toBeNull()
  })
})
