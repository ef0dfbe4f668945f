import { randomUUID } from "node:crypto"
import { connect } from "node:net"
import { DateTime, Duration, Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { slowdown } from "../../../servers/slowdown.ts"
import { field, OPERATOR, start } from "../served.ts"
import { follow as followAt } from "./follow.ts"

let reads = 0
const server = await start(
  (store) => ({
    ...store,
    readAll: (after, limit) =>
      Effect.suspend(() => {
        reads++
        return store.readAll(after, limit)
      })
  }),
  { heartbeat: Duration.millis(150), patience: Duration.millis(200), subscribersMax: 40, subscribersOfOrgMax: 30 }
)
const { call, endpoint, send, append, url } = server

const open = new Set<{ readonly stop: () => void }>()
const follow = async (org: string, query = "", lastEventId: string | null = null) => {
  const subscriber = await followAt(url, org, query, lastEventId)
  open.add(subscriber)
  return subscriber
}
afterEach(() => {
  for (const subscriber of open) subscriber.stop()
  open.clear()
})

/** Reads on after each end: who reads slowly, on a busy machine, is cut off too. */
const receivedInAll = async (org: string, after: string | null, count: number) => {
  let [from, seen] = [after, 0]
  while (seen < count) {
    const subscriber = await follow(org, ofMessages, from)
    await subscriber.until("more", () => subscriber.hasEnded() || seen + subscriber.events.length >= count)
    from = subscriber.lastId()
    seen += subscriber.events.length
    subscriber.stop()
  }
}

const newOrg = () => `org-${randomUUID()}`
const queue = async (org: string, fields: object = {}, to?: string) => {
  const request = {
    channel: "webhook",
    to: to ?? (await endpoint(org)),
    payloadJson: { secret: "of the body" },
    ...fields
  }
  const answer = await send(request, { org })
  expect(answer.status, answer.text).toBe(201)
  return answer.json["id"] as string
}
const deliver = (id: string) =>
  append(id, [
    { type: "AttemptStarted", epoch: 1, attempt: 1 },
    { type: "AttemptSucceeded", attempt: 1, status: 200, providerMessageId: null, durationMs: 3 },
    { type: "MessageDelivered", proof: "response" }
  ])
const told = (
  events: ReadonlyArray<{ readonly data: { readonly type: string; readonly message: Record<string, unknown> | null } }>
) => events.map(({ data: { type, message } }) => [type, message?.["status"]])
const ofMessages = "?channel=webhook"

describe("the feed", () => {
  it("tells each fact of the org as it is stored, with what the message is from then on, and no body", async () => {
    const org = newOrg()
    const subscriber = await follow(org, ofMessages)
    expect(subscriber.response.headers["content-type"]).toContain("text/event-stream")
    expect(subscriber.response.headers["cache-control"]).toBe("no-store")
    const id = await queue(org, { dossierId: "d-1", correlationId: "c-1" })
    await deliver(id)
    await subscriber.received(4)
    expect(told(subscriber.events)).toEqual([
      ["MessageQueued", "QUEUED"],
      ["AttemptStarted", "SENDING"],
      ["AttemptSucceeded", "SENT"],
      ["MessageDelivered", "DELIVERED"]
    ])
    const [first] = subscriber.events
    expect(first!.data).toMatchObject({
      stream: `message-${id}`,
      version: 1,
      actor: "operator",
      message: { id, channel: "webhook", dossierId: "d-1", correlationId: "c-1" }
    })
    expect(JSON.stringify(subscriber.events)).not.toContain("of the body")
    // What can be erased stands beside the facts.
    expect(JSON.stringify(subscriber.events.map(({ data }) => data.data))).not.toMatch(/d-1|c-1/)
  })

  it("never tells anything of another org, whoever's endpoint or circuit it is about", async () => {
    const [mine, theirs] = [newOrg(), newOrg()]
    const subscriber = await follow(mine)
    const destination = await endpoint(theirs)
    await queue(theirs, {}, destination)
    expect((await call("POST", `/api/v1/circuits/${destination}/hold`, { org: theirs })).status).toBe(200)
    const id = await queue(mine)
    await subscriber.until("my message", () => subscriber.events.some(({ data }) => data.stream === `message-${id}`))
    expect(subscriber.events.filter(({ data }) => data.stream === `circuit-${destination}`)).toEqual([])
    expect(JSON.stringify(subscriber.events)).not.toContain(theirs)
    expect(JSON.stringify(subscriber.events)).not.toContain(destination)
  })

  it("tells facts of other things than messages too", async () => {
    const org = newOrg()
    const destination = await endpoint(org)
    const subscriber = await follow(org, `?stream=circuit-${destination}`)
    await call("POST", `/api/v1/circuits/${destination}/hold`, { org, body: { reason: "moving" } })
    await subscriber.received(1)
    expect(subscriber.events[0]!.data).toMatchObject({
      stream: `circuit-${destination}`,
      type: "CircuitHeld",
      data: { reason: "moving" },
      message: null
    })
  })

  it("goes on after the last event that was seen, and misses nothing that happened meanwhile", async () => {
    const org = newOrg()
    const first = await follow(org, ofMessages)
    const to = await endpoint(org)
    const ids = [await queue(org, {}, to)]
    await first.received(1)
    first.stop()
    const messages = Array.from({ length: 450 }, () => ({ channel: "webhook", to, payloadJson: 1 }))
    const batch = await call("POST", "/api/v1/outbound/messages/batch", { org, body: { messages } })
    for (const { message } of batch.json["items"]) ids.push(message.id)
    const second = await follow(org, ofMessages, first.lastId())
    await second.received(450)
    ids.push(await queue(org, {}, to))
    await second.received(451)
    expect(second.events.map(({ data }) => data.stream)).toEqual(ids.slice(1).map((id) => `message-${id}`))
    const third = await follow(org, `?channel=webhook&after=${second.events[448]!.id}`)
    await third.received(2)
    expect(third.events.map(({ data }) => data.stream)).toEqual(ids.slice(-2).map((id) => `message-${id}`))
  })

  it("comes from where a heartbeat was, even when nothing was for this subscriber", async () => {
    const [org, other] = [newOrg(), newOrg()]
    const first = await follow(org)
    const begun = first.lastId()
    await queue(other)
    await first.until("a heartbeat further on", () => first.lastId() !== begun)
    expect(first.events).toEqual([])
    first.stop()
    const second = await follow(org, ofMessages, first.lastId())
    const id = await queue(org)
    await second.received(1)
    expect(second.events[0]!.data.stream).toBe(`message-${id}`)
  })

  it("shows that it is alive while nothing happens", async () => {
    const subscriber = await follow(newOrg())
    await subscriber.until("three heartbeats", () => subscriber.comments.length >= 4)
    expect(subscriber.events).toEqual([])
  })

  it("keeps to its filters", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    const queries = [
      "type=AttemptStarted",
      "status=DELIVERED",
      "dossierId=d-2",
      `to=${to}`,
      "correlationId=c-9",
      "channel=http"
    ]
    const subscribers = await Promise.all(queries.map((query) => follow(org, `?${query}`)))
    const all = await follow(org, ofMessages)
    const one = await queue(org, { dossierId: "d-2" }, to)
    const two = await queue(org, { correlationId: "c-9" })
    await deliver(one)
    await deliver(two)
    await all.received(8)
    await new Promise((resolve) => setTimeout(resolve, 100))
    const seen = subscribers.map(({ events }) =>
      events.map(({ data }) => `${data.stream === `message-${one}` ? 1 : 2}.${data.version}`)
    )
    expect(seen).toEqual([
      ["1.2", "2.2"],
      ["1.4", "2.4"],
      ["1.1", "1.2", "1.3", "1.4"],
      ["1.1", "1.2", "1.3", "1.4"],
      ["2.1", "2.2", "2.3", "2.4"],
      []
    ])
  })

  it("reads the log once for all who follow", async () => {
    const org = newOrg()
    const subscribers = await Promise.all(Array.from({ length: 30 }, () => follow(org, ofMessages)))
    const to = await endpoint(org)
    await queue(org, {}, to)
    await Promise.all(subscribers.map((subscriber) => subscriber.received(1)))
    reads = 0
    const since = performance.now()
    for (let i = 0; i < 10; i++) await queue(org, {}, to)
    await Promise.all(subscribers.map((subscriber) => subscriber.received(11)))
    // 30 who read for themselves would have read 300 times, and more the longer it takes: one looks every 50 ms at most.
    expect(reads).toBeLessThan(150 + (performance.now() - since) / 40)
  })

  const SENT = 10_000

  it("cuts off who does not read, and keeps nothing for them", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    const witness = await follow(org, ofMessages)
    const begun = witness.lastId()
    const deaf = connect(Number(new URL(url).port), "127.0.0.1")
    deaf.pause()
    const ended = new Promise((resolve) => deaf.once("close", resolve))
    deaf.on("error", () => {})
    // More than the buffers of a connection hold: facts hold no payload and nothing about people, so they are many.
    const eventType = "x".repeat(200)
    const retry = { strategy: "schedule", waitsMs: Array.from({ length: 60 }, () => 86_400_000) }
    for (let i = 0; i < SENT / 500; i++) {
      const messages = Array.from({ length: 500 }, () => ({ channel: "webhook", to, payloadJson: 1, eventType, retry }))
      expect((await call("POST", "/api/v1/outbound/messages/batch", { org, body: { messages } })).status).toBe(200)
    }
    deaf.write(
      `GET /api/v1/feed HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: ${org}\r\nlast-event-id: ${begun}\r\n\r\n`
    )
    await receivedInAll(org, begun, SENT)
    // Closed on the far side; here it shows once what is on its way has been read.
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    let bytes = 0
    deaf.on("data", (chunk) => (bytes += chunk.length))
    deaf.resume()
    await ended
    expect(bytes).toBeLessThan(SENT * 1_000)
    await receivedInAll(org, begun, SENT)
  })

  it("is followed by as many of an org as the operator lets it", async () => {
    const org = "bounded"
    await call("PUT", `/api/v1/orgs/${org}`, { body: { limits: { feeds: 1 } } })
    await follow(org)
    const another = await call("GET", "/api/v1/feed", { org })
    expect([another.status, another.json["type"]]).toEqual([429, "urn:posthaste:problem:limit-reached"])
    expect(another.headers.get("retry-after")).toBe("30")
    await follow("another-org")
  })

  it("refuses an id it never gave out, a filter it does not know, and more subscribers than it can take", async () => {
    const headers = { "last-event-id": "MTIz" }
    expect(await call("GET", "/api/v1/feed", { headers })).toMatchObject({ status: 400 })
    const unknown = await call("GET", "/api/v1/feed?colour=red")
    expect(unknown.status).toBe(400)
    expect(field(unknown)).toEqual(["colour"])
    expect((await call("GET", "/api/v1/feed", { key: null })).status).toBe(401)
    await Promise.all(Array.from({ length: 30 }, () => follow("greedy")))
    // One org has its share, and the others theirs.
    expect((await call("GET", "/api/v1/feed", { org: "greedy" })).status).toBe(429)
    await Promise.all(Array.from({ length: 10 }, () => follow(newOrg())))
    const tooMany = await call("GET", "/api/v1/feed")
    expect(tooMany.status).toBe(429)
    expect(tooMany.headers.get("content-type")).toBe("application/problem+json")
    expect(tooMany.headers.get("retry-after")).toBe("30")
    for (const subscriber of open) subscriber.stop()
    // The server learns of it a moment later.
    await expect.poll(async () => (await follow(newOrg())).response.statusCode, { timeout: 60_000 }).toBe(200)
  })

  it("ends when its key is revoked, and no other does", async () => {
    const make = async () =>
      (await call("POST", "/api/v1/api-keys", { org: null, body: { orgId: "acme", name: "x" } })).json
    const [gone, stays] = [await make(), await make()]
    const [ends, goesOn] = [
      await followAt(url, "acme", "", null, gone["key"]),
      await followAt(url, "acme", "", null, stays["key"])
    ]
    await call("DELETE", `/api/v1/api-keys/${gone["id"]}`, { org: null })
    await ends.until("the end", ends.hasEnded)
    expect(goesOn.hasEnded()).toBe(false)
    goesOn.stop()
  })

  it("lets the server stop at once", async () => {
    const another = await start()
    const subscriber = await followAt(another.url, "acme")
    const before = performance.now()
    await another.stop()
    expect(performance.now() - before).toBeLessThan(3_000 * slowdown())
    await subscriber.until("the end", subscriber.hasEnded)
  })
})

describe("a stream", () => {
  it("of any kind is told to its own org, and to no other", async () => {
    const org = newOrg()
    const to = await endpoint(org)
    const id = await queue(org, {}, to)
    await append(id, [
      { type: "AttemptStarted", epoch: 1, attempt: 1 },
      {
        type: "AttemptFailed",
        attempt: 1,
        error: { code: "http_410", message: "gone", retryable: false },
        status: 410,
        durationMs: 3,
        retryAt: null
      },
      { type: "MessageFailed", by: "response", error: { code: "http_410", message: "gone", retryable: false } }
    ])
    await server.project()
    await call("POST", `/api/v1/circuits/${to}/hold`, { org })
    const replay = (await call("POST", "/api/v1/dead-letters/replay", { org, body: { filter: {} } })).json["id"]
    await call("GET", `/api/v1/replays/${replay}`, { org })
    await call("POST", `/api/v1/replays/${replay}/cancel`, { org })
    for (const [stream, type] of [
      [`message-${id}`, "MessageQueued"],
      [`circuit-${to}`, "CircuitHeld"],
      [`replay-${replay}`, "ReplayRequested"]
    ]) {
      const answer = await call("GET", `/api/v1/streams/${stream}`, { org })
      expect(answer.status, stream).toBe(200)
      expect(answer.json["items"][0]).toMatchObject({ version: 1, type, name: `${type}@1` })
      expect(DateTime.make(answer.json["items"][0].at)).not.toBeUndefined()
      expect((await call("GET", `/api/v1/streams/${stream}`, { org: newOrg() })).status, stream).toBe(404)
    }
    for (const stream of [`message-${randomUUID()}`, `circuit-${randomUUID()}`, "message-x", "nothing", "x-y", "-"]) {
      expect((await call("GET", `/api/v1/streams/${stream}`, { org })).status, stream).toBe(404)
    }
  })
})
