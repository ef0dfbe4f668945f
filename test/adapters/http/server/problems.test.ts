import { connect } from "node:net"
import { gzipSync } from "node:zlib"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type Answer, field, OPERATOR, start } from "../served.ts"

let bug = false
const posthaste = await start((store) => ({
  ...store,
  load: (id) =>
    Effect.suspend(() => (bug ? Effect.die(new Error("secret detail at /srv/app/index.ts")) : store.load(id)))
}))
const { call, url } = posthaste
const to = await posthaste.endpoint()
const messages = "/api/v1/outbound/messages"
const nobody = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"

const expectProblem = (answer: Answer, status: number) => {
  expect(answer.status).toBe(status)
  expect(answer.headers.get("content-type")).toBe("application/problem+json")
  expect(Object.keys(answer.json)).toEqual(["type", "title", "status", "detail", "errors"])
  expect(answer.json["status"]).toBe(status)
  for (const text of [answer.json["type"], answer.json["title"], answer.json["detail"]]) expect(text).not.toBe("")
  expect(answer.text).not.toMatch(/node_modules|\.ts:|at .*\(/)
}

/** Exactly these bytes, and whatever comes back until the far side closes. */
/** What is answered until the connection ends, or, with `part`, until that was said. */
const raw = (bytes: string | Buffer, part?: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes))
    let text = ""
    socket.on("data", (data) => {
      text += data.toString()
      if (part !== undefined && text.includes(part)) socket.destroy()
    })
    socket.on("close", () => resolve(text))
    socket.on("error", reject)
  })

describe("a body", () => {
  const post = (body: string | Buffer, headers: Record<string, string> = { "content-type": "application/json" }) =>
    fetch(`${url}${messages}`, {
      method: "POST",
      headers: { authorization: `Bearer ${OPERATOR}`, "x-org-id": "acme", ...headers },
      body: typeof body === "string" ? body : new Uint8Array(body)
    }).then(async (response): Promise<Answer> => {
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: JSON.parse(text) }
    })

  it.each([
    ["nothing at all", ""],
    ["white space", " \n"],
    ["half an object", '{"channel":'],
    ["a trailing comma", '{"channel":"webhook",}'],
    ["two values", "{} {}"],
    ["single quotes", "{'a':1}"],
    ["a number JSON does not have", '{"a":NaN}'],
    ["a raw control character in a string", '{"a":"\u0001"}']
  ])("that is not JSON is refused: %s", async (_, body) => {
    expectProblem(await post(body), 400)
  })

  it("is not quoted back where it is broken", async () => {
    const answer = await post('{"channel":"webhook","token":"s3cret" oops}')
    expectProblem(answer, 400)
    expect(answer.text).not.toContain("s3cret")
    expect(answer.json["detail"]).toContain("see character 38")
  })

  it.each([
    ["a list", "[]", "body"],
    ["a text", '"x"', "body"],
    ["null", "null", "body"]
  ])("that is no object is refused: %s", async (_, body, name) => {
    const answer = await post(body)
    expectProblem(answer, 400)
    expect(answer.json["errors"]).toEqual([{ field: name, reason: "must be an object" }])
  })

  it("that is not UTF-8 is refused, not repaired", async () => {
    const body = Buffer.concat([
      Buffer.from(`{"channel":"webhook","to":"${to}","payloadJson":"`),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}')
    ])
    const answer = await post(body)
    expectProblem(answer, 400)
    expect(answer.json["detail"]).toContain("UTF-8")
  })

  it("with prototype keys is refused by their names", async () => {
    const answer = await post(`{"__proto__":{"channel":"webhook"},"constructor":1,"to":"${to}","payloadJson":1}`)
    expectProblem(answer, 400)
    expect([...field(answer)].sort()).toEqual(["__proto__", "channel", "constructor"])
  })

  it.each([99, 100, 100_000])("nested %i deep in its payload is judged without falling over", async (depth) => {
    const answer = await post(
      `{"channel":"webhook","to":"${to}","payloadJson":${"[".repeat(depth)}${"]".repeat(depth)}}`
    )
    if (depth < 100) expect(answer.status).toBe(201)
    else expectProblem(answer, 400)
  })

  it.each([
    ["no content type", {}],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }],
    ["another charset", { "content-type": "application/json; charset=latin1" }],
    ["another kind of JSON", { "content-type": "application/jsonp" }]
  ])("in another form is a 415: %s", async (_, headers) => {
    const bytes = Buffer.from("{}")
    expectProblem(await post(bytes, headers), 415)
  })

  it("that is compressed is a 415: a small one could be a large one", async () => {
    const answer = await post(gzipSync("{}"), { "content-type": "application/json", "content-encoding": "gzip" })
    expectProblem(answer, 415)
  })

  it("may name its charset", async () => {
    const answer = await post(`{"channel":"webhook","to":"${to}","payloadJson":1}`, {
      "content-type": "Application/JSON; charset=UTF-8"
    })
    expect(answer.status).toBe(201)
  })

  const sized = (bytes: number) => {
    const frame = `{"channel":"webhook","to":"${to}","payloadJson":""}`
    return frame.replace('""', `"${"x".repeat(bytes - frame.length)}"`)
  }

  it("may have 256 KiB and not a byte more", async () => {
    expect((await post(sized(256 * 1024))).status).toBe(201)
    expectProblem(await post(sized(256 * 1024 + 1)), 413)
  })

  it("of a batch may have 1 MiB", async () => {
    const entry = { channel: "webhook", to, payloadJson: "x".repeat(100_000) }
    expect((await call("POST", `${messages}/batch`, { body: { messages: Array(10).fill(entry) } })).status).toBe(200)
    expectProblem(await call("POST", `${messages}/batch`, { body: { messages: Array(11).fill(entry) } }), 413)
  })

  it("of unknown length is counted while it arrives", async () => {
    const head = `POST ${messages} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`
    // Five chunks of 64 KiB and no end: the answer must not wait for one.
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(head + chunk.repeat(5)))
      socket.once("data", (data) => {
        resolve(data.toString())
        socket.destroy()
      })
      socket.on("error", reject)
    })
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain("application/problem+json")
  })

  it("announced as too large is refused before it is sent", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const head = `POST ${messages} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json\r\ncontent-length: 999999999\r\n\r\n`
      const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(head))
      socket.once("data", (data) => {
        resolve(data.toString())
        socket.destroy()
      })
      socket.on("error", reject)
    })
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  })

  it("can be asked for with expect: 100-continue", async () => {
    const body = `{"channel":"webhook","to":"${to}","payloadJson":1}`
    const answer = await raw(
      `POST ${messages} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: 100-continue\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    )
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /)
    expect(answer).toContain("x-content-type-options: nosniff\r\n")
  })

  it("is read of who would rather speak HTTP/2, as curl --http2 asks", async () => {
    const body = `{"channel":"webhook","to":"${to}","payloadJson":1}`
    const answer = await raw(
      `POST ${messages} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      '"status":"QUEUED"'
    )
    expect(answer).toMatch(/^HTTP\/1\.1 201 /)
  })

  it("that ends too early is a 400 and ends nothing else", async () => {
    const head = `POST ${messages} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"channel"`
    await new Promise<void>((resolve, reject) => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1", () =>
        socket.write(head, () => socket.resetAndDestroy())
      )
      socket.on("close", () => resolve())
      socket.on("error", reject)
    })
    const body = `{"channel":"webhook","to":"${to}","payloadJson":1}`
    expect((await post(body)).status).toBe(201)
  })
})

describe("a path", () => {
  it.each([
    "/nowhere",
    "/api/v1",
    "/api/v1/outbound",
    "/api/v2/outbound/messages",
    "/%ZZ",
    `${messages}/a/b/c`,
    "/../etc"
  ])("that leads nowhere is a 404: %s", async (path) => {
    expectProblem(await call("GET", path), 404)
  })

  it("too long to be one is a 404", async () => {
    expectProblem(await call("GET", `${messages}/${"a".repeat(5000)}`), 404)
  })

  it.each([
    ["DELETE", messages, ["POST", "GET"]],
    ["PUT", `${messages}/${nobody}`, ["GET"]],
    ["GET", `${messages}/${nobody}/cancel`, ["POST"]],
    ["POST", "/healthz", ["GET"]],
    ["POST", "/openapi.json", ["GET"]],
    ["PATCH", `/api/v1/webhook-endpoints/${nobody}/retry-config`, ["GET", "PUT", "DELETE"]],
    ["OPTIONS", "/api/v1/outbound/stats?x=1", ["GET"]],
    ["OPTIONS", `${messages}/batch`, ["POST"]]
  ])("answers a wrong method with what is allowed: %s %s", async (method, path, allowed) => {
    const answer = await call(method, path)
    expectProblem(answer, 405)
    expect(answer.headers.get("allow")!.split(", ").sort()).toEqual(
      (allowed.includes("GET") ? [...allowed, "HEAD"] : [...allowed]).sort()
    )
  })

  it("with HEAD has the status of GET and no body", async () => {
    const answer = await call("HEAD", "/healthz")
    expect([answer.status, answer.text]).toEqual([200, ""])
  })
})

describe("what is not HTTP", () => {
  it.each([
    ["no request at all", "hello\r\n\r\n", 400],
    [
      "a length and chunks at once",
      "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      400
    ],
    ["two lengths", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcd", 400],
    ["a folded header", "GET / HTTP/1.1\r\nhost: x\r\na: b\r\n c\r\n\r\n", 400],
    ["headers without end", `GET / HTTP/1.1\r\nhost: x\r\na: ${"b".repeat(20_000)}\r\n\r\n`, 431]
  ])("is refused in the same words: %s", async (_, bytes, status) => {
    const answer = await raw(bytes)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain("content-type: application/problem+json")
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toMatchObject({ status })
  })
})

describe("a transfer encoding nobody knows", () => {
  it("is never read as a message, and ends the connection", async () => {
    const head = `host: x\r\nauthorization: Bearer ${OPERATOR}\r\nx-org-id: acme\r\ncontent-type: application/json\r\n`
    const body = `{"channel":"webhook","to":"${to}","payloadJson":1}`
    const answer = await raw(`POST ${messages} HTTP/1.1\r\n${head}transfer-encoding: xchunked\r\n\r\n${body}`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).not.toContain(" 201 ")
  })
})

describe("a bug", () => {
  it("is a 500 that tells the number it was logged under and nothing else", async () => {
    bug = true
    const answer = await call("GET", `${messages}/${nobody}`)
    bug = false
    expectProblem(answer, 500)
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/)
    expect(answer.json["detail"]).toContain(answer.headers.get("x-request-id"))
    expect(answer.text).not.toContain("secret detail")
    const [entry] = posthaste.logged.filter((text) => text.includes(answer.headers.get("x-request-id")!))
    expect(entry).toContain("secret detail")
  })
})
