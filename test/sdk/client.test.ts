/** The client over a real HTTP server: what it sends, when it sends it again, and which errors it throws. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { waitBefore } from "../../sdk/src/client.ts"
import {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  Posthaste,
  type PosthasteOptions,
  ProblemError,
  TimeoutError,
  TooManyRequestsError,
  UnavailableError
} from "../../sdk/src/index.ts"

interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage["headers"]
  readonly body: unknown
}

type Answer = (response: ServerResponse, asked: Asked) => void

let asked: Array<Asked> = []
let answers: Array<Answer> = []
let url = ""

const server = createServer(async (request, response) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString("utf8")
  const { method = "", url = "", headers } = request
  asked.push({ method, url, headers, body: text === "" ? undefined : JSON.parse(text) })
  const answer = answers.length > 1 ? answers.shift()! : answers[0]!
  answer(response, asked.at(-1)!)
})

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))

const problem = (status: number, headers: Record<string, string> = {}): Answer =>
  json(
    status,
    { type: "urn:posthaste:problem:x", title: "No", status, detail: "Because.", errors: [] },
    {
      "content-type": "application/problem+json",
      ...headers
    }
  )

const hangUp: Answer = (response) => void response.destroy()
const say = (...given: ReadonlyArray<Answer>) => (answers = [...given])
const client = (options: Partial<PosthasteOptions> = {}) => new Posthaste({ url, apiKey: "ph_live_x", ...options })
const message = { channel: "webhook", to: "somewhere", payloadJson: { a: 1 } }

beforeEach(async () => {
  asked = []
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

describe("a call", () => {
  it("is the route's request, with the key and the org", async () => {
    say(json(201, { id: "m-1" }))
    await client({ org: "acme", url: `${url}/` }).messages.send(message, { idempotencyKey: "k" })
    expect(asked).toMatchObject([{ method: "POST", url: "/api/v1/outbound/messages", body: message }])
    expect(asked[0]!.headers).toMatchObject({
      authorization: "Bearer ph_live_x",
      "x-org-id": "acme",
      "idempotency-key": "k",
      "content-type": "application/json"
    })
  })

  it("fills its path, escaped, and its query, without what is undefined", async () => {
    say(json(200, {}))
    await client().messages.get("a/b ?", { at: "2026-01-01T00:00:00Z" })
    await client().messages.get("m-1", { at: undefined })
    await client().dossiers.putConsent("d 1", "whatsapp", { granted: true, source: "form" })
    expect(asked.map(({ url }) => url)).toEqual([
      "/api/v1/outbound/messages/a%2Fb%20%3F?at=2026-01-01T00%3A00%3A00Z",
      "/api/v1/outbound/messages/m-1",
      "/api/v1/dossiers/d%201/consents/whatsapp"
    ])
  })

  it("needs every part of its path", async () => {
    await expect(client().messages.get("")).rejects.toThrow("id must be")
    await expect(client().messages.get(undefined as unknown as string)).rejects.toThrow("id must be")
    await expect(client().messages.get("..")).rejects.toThrow("id must not")
    expect(asked).toEqual([])
  })

  it("answers nothing for an answer without a body", async () => {
    say((response) => void response.writeHead(204).end())
    expect(await client().webhookEndpoints.remove("e-1")).toBeUndefined()
  })

  it("is refused where the client is set up wrong", () => {
    expect(() => new Posthaste({ url: "posthaste:8080", apiKey: "x" })).toThrow("url must begin")
    expect(() => new Posthaste({ url, apiKey: "" })).toThrow("apiKey")
  })
})

describe("a refusal", () => {
  it.each([
    [400, InvalidRequestError],
    [401, AuthenticationError],
    [403, ForbiddenError],
    [404, NotFoundError],
    [409, ConflictError],
    [413, InvalidRequestError],
    [429, TooManyRequestsError],
    [503, UnavailableError],
    [500, ProblemError]
  ])("of status %s is an error of its own", async (status, kind) => {
    say(problem(status))
    const error = await client({ retries: 0 })
      .messages.send(message)
      .catch((error: unknown) => error)
    expect(error).toBeInstanceOf(kind)
    expect(error).toMatchObject({ status, problem: { detail: "Because." }, message: `${status} No: Because.` })
  })

  it("of a proxy becomes a problem too", async () => {
    say((response) => void response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>"))
    const error = await client()
      .messages.get("m-1")
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ status: 502, problem: { type: "about:blank", detail: "<h1>Bad gateway</h1>" } })
  })
})

describe("a call is tried again", () => {
  it.each([
    ["408", problem(408)],
    ["429", problem(429)],
    ["503", problem(503)],
    ["no answer", hangUp]
  ] as const)("after %s, under one idempotency key", async (_, answer) => {
    say(answer, answer, json(201, { id: "m-1" }))
    expect(await client().messages.send(message)).toEqual({ id: "m-1" })
    const keys = asked.map(({ headers }) => headers["idempotency-key"])
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
  })

  it("in a batch under one key for each entry, and keeps the caller's", async () => {
    say(problem(503), json(200, { items: [] }))
    await client().messages.sendBatch({ messages: [message, { ...message, idempotencyKey: "mine" }] })
    const keys = asked.map(({ body }) => (body as { messages: ReadonlyArray<{ idempotencyKey: string }> }).messages)
    expect(keys[0]!.map(({ idempotencyKey }) => idempotencyKey)).toEqual([
      expect.stringMatching(/^[0-9a-f-]{36}$/),
      "mine"
    ])
    expect(keys[1]).toEqual(keys[0])
  })

  it("under a new key each time the caller calls", async () => {
    say(json(201, {}))
    for (let n = 0; n < 2; n++) await client().messages.send(message)
    expect(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size).toBe(2)
  })

  it("as often as the caller allows", async () => {
    say(problem(503))
    await expect(client({ retries: 2 }).messages.stats()).rejects.toThrow(UnavailableError)
    expect(asked).toHaveLength(3)
    await expect(client().messages.stats({ retries: 0 })).rejects.toThrow(UnavailableError)
    expect(asked).toHaveLength(4)
  })

  it("not when it may have been done, and has no key that would tell", async () => {
    for (const answer of [problem(408), problem(503), hangUp]) {
      say(answer)
      asked = []
      await client()
        .messages.cancel("m-1")
        .catch(() => {})
      expect(asked).toHaveLength(1)
    }
    say(problem(429), json(200, {}))
    await client().messages.cancel("m-1")
  })

  it.each([400, 401, 404, 409, 500, 502])("not after %s", async (status) => {
    say(problem(status))
    await expect(client().messages.get("m-1")).rejects.toThrow(ProblemError)
    expect(asked).toHaveLength(1)
  })

  it("and a DELETE that finds nothing then was done by the first try", async () => {
    say(hangUp, problem(404))
    expect(await client().webhookEndpoints.remove("e-1")).toBeUndefined()
    say(problem(404))
    await expect(client().webhookEndpoints.remove("e-1")).rejects.toThrow(NotFoundError)
  })
})

describe("the wait before the next try", () => {
  const error = (retryAfterMs?: number) =>
    new TooManyRequestsError({ type: "", title: "", status: 429, detail: "", errors: [] }, retryAfterMs)

  it("is at least what Retry-After says", () => {
    expect(waitBefore(error(7_000), 0, true)).toBe(7_000)
  })

  it("is not made when Retry-After asks for more than a minute", () => {
    expect(waitBefore(error(61_000), 0, true)).toBeNull()
  })

  it("doubles, has chance in it, and is bounded", () => {
    for (let tried = 0; tried < 20; tried++) {
      const most = Math.min(250 * 2 ** tried, 8_000)
      const wait = waitBefore(error(), tried, true)!
      expect(wait).toBeGreaterThanOrEqual(most / 2)
      expect(wait).toBeLessThanOrEqual(most)
    }
  })

  it("reads Retry-After in seconds and as a date", async () => {
    say(problem(429, { "retry-after": "90" }))
    await expect(client().messages.stats()).rejects.toMatchObject({ retryAfterMs: 90_000 })
    const date = new Date(Date.now() + 3_600_000).toUTCString()
    say(problem(429, { "retry-after": date }))
    const { retryAfterMs } = (await client()
      .messages.stats()
      .catch((error: unknown) => error)) as ProblemError
    expect(retryAfterMs).toBeGreaterThan(3_000_000)
  })
})

describe("a call ends", () => {
  const never: Answer = () => {}

  it("with a TimeoutError when no answer comes in time", async () => {
    say(never)
    await expect(client({ timeoutMs: 50, retries: 0 }).messages.stats()).rejects.toThrow(TimeoutError)
  })

  it("with a TimeoutError when the answer begins and does not end", async () => {
    say((response) => void response.writeHead(200, { "content-type": "application/json" }).write("{"))
    await expect(client({ timeoutMs: 50, retries: 0 }).messages.stats()).rejects.toThrow(TimeoutError)
  })

  it("with a ConnectionError that says why when nobody answers", async () => {
    const nobody = new Posthaste({ url: "http://127.0.0.1:1", apiKey: "x", retries: 0 })
    await expect(nobody.messages.stats()).rejects.toThrow(ConnectionError)
  })

  it("with the caller's reason when the caller aborts, before, while asking and while waiting", async () => {
    const reason = new Error("enough")
    await expect(client().messages.stats({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    for (const answer of [never, problem(429, { "retry-after": "50" })]) {
      const controller = new AbortController()
      say((response, request) => {
        answer(response, request)
        setTimeout(() => controller.abort(reason), 20)
      })
      await expect(client().messages.stats({ signal: controller.signal })).rejects.toBe(reason)
    }
  })
})

describe("a list", () => {
  const pages: Answer = (response, request) => {
    const cursor = new URL(request.url, "http://x").searchParams.get("cursor")
    const number = cursor === null ? 1 : Number(cursor)
    const items = number === 2 ? [] : [{ id: `m-${number}` }]
    json(200, { items, nextCursor: number < 3 ? String(number + 1) : null })(response, request)
  }

  it("is awaited for its first page", async () => {
    say(pages)
    expect(await client().messages.list({ status: "FAILED" })).toEqual({ items: [{ id: "m-1" }], nextCursor: "2" })
    expect(asked.map(({ url }) => url)).toEqual(["/api/v1/outbound/messages?status=FAILED"])
  })

  it("is gone through to the end of the last page, past one that is empty", async () => {
    say(pages)
    const ids: Array<string> = []
    for await (const { id } of client().messages.list({ status: "FAILED" })) ids.push(id)
    expect(ids).toEqual(["m-1", "m-3"])
    expect(asked.at(-1)!.url).toBe("/api/v1/outbound/messages?status=FAILED&cursor=3")
  })

  it("asks for no more than the loop wants", async () => {
    say(pages)
    for await (const _ of client().messages.list()) break
    expect(asked).toHaveLength(1)
  })
})

describe("the feed", () => {
  const stream =
    (text: string, end = true): Answer =>
    (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(text)
      if (end) response.end()
    }
  const fact = (version: number) => `event: message\nid: at-${version}\ndata: {"version":${version}}\n\n`

  const take = async (
    count: number,
    call?: Parameters<Posthaste["feed"]>[1],
    options?: Parameters<Posthaste["feed"]>[0]
  ) => {
    const facts: Array<string> = []
    for await (const { id, version } of client().feed(options, call)) {
      facts.push(`${version} ${id}`)
      if (facts.length === count) return facts
    }
    throw new Error("the feed ended")
  }
  const lastEventIds = () => asked.map(({ headers }) => headers["last-event-id"])

  it("goes on behind the last fact when the connection ends, breaks or is refused for a time", async () => {
    say(stream(fact(1)), problem(503), hangUp, stream(fact(2), false))
    expect(await take(2)).toEqual(["1 at-1", "2 at-2"])
    expect(lastEventIds()).toEqual([undefined, "at-1", "at-1", "at-1"])
  })

  it("begins where the caller says, with the caller's filter", async () => {
    say(stream(fact(1)))
    await take(1, {}, { lastEventId: "at-0", type: "MessageDelivered" })
    expect(lastEventIds()).toEqual(["at-0"])
    expect(asked[0]!.url).toBe("/api/v1/feed?type=MessageDelivered")
  })

  it("moves on with ids that come without a fact, and reads events however they are cut", async () => {
    const text = `: following\r\nid: at-0\r\n\r\n${fact(1)}: nothing new\nid: at-5\n\n`
    const slowly: Answer = async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      for (const character of text) response.write(character)
      response.end()
    }
    say(slowly, stream(`id: at-6\ndata: {"version":\ndata: 2}\n\n`, false))
    expect(await take(2)).toEqual(["1 at-1", "2 at-6"])
    expect(lastEventIds()).toEqual([undefined, "at-5"])
  })

  it("does not give a fact that was cut off, and gets it whole with the next connection", async () => {
    say(stream(fact(1) + fact(2).slice(0, -1)), stream(fact(2), false))
    expect(await take(2)).toEqual(["1 at-1", "2 at-2"])
    expect(lastEventIds()).toEqual([undefined, "at-1"])
  })

  it("connects again when the connection is silent", async () => {
    say(stream(fact(1), false), stream(fact(2), false))
    expect(await take(2, { silenceMs: 50 })).toEqual(["1 at-1", "2 at-2"])
  })

  it("ends with an error that waiting can't help", async () => {
    say(problem(401))
    await expect(take(1)).rejects.toThrow(AuthenticationError)
  })

  it("ends with the caller's reason", async () => {
    const controller = new AbortController()
    const reason = new Error("enough")
    say(stream(fact(1), false))
    setTimeout(() => controller.abort(reason), 50)
    await expect(take(2, { signal: controller.signal })).rejects.toBe(reason)
  })
})
