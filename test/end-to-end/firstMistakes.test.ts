/** docs/first-mistakes.md: each mistake is made as a newcomer makes it, and answered with the line of the page. */
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { run as runProgram } from "../../src/adapters/embedded-postgres/account.ts"
import { posthaste, type Ran } from "../servers/commandLine.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { compileCache, runProgramToEnd } from "../servers/posthaste.ts"
import { api, operatorKey, type Product, startProduct } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"

const root = join(import.meta.dirname, "../..")

/** The lines of the page by their numbers. `…` is what differs. */
const lines = new Map(
  [...readFileSync(join(root, "docs/first-mistakes.md"), "utf8").matchAll(/^\| (\d+) \|.*\| `(.*)` \|$/gm)].map(
    ([, number, line]) => [Number(number), line!]
  )
)

const tried = new Set<number>()

const patternOf = (number: number): RegExp => {
  tried.add(number)
  const parts = lines.get(number)!.split("…")
  return new RegExp(`^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^\\n]*")}$`)
}

/** Exactly that line and no other, with the exit code of a failure. */
const expectLine = (number: number, { code, err, out }: Pick<Ran, "code" | "err" | "out">) => {
  expect(err.replace(/\n$/, ""), `${number}: ${err}${out}`).toMatch(patternOf(number))
  expect(code).not.toBe(0)
}

const scope = Scope.makeUnsafe()
const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.runPromise(Scope.provide(effect, scope))
const home = temporaryDirectory()
const absent = join(home, "absent")

let product: Product
let database: string
const keys = {
  POSTHASTE_OPERATOR_KEY: operatorKey,
  POSTHASTE_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString("base64")
}

beforeAll(async () => {
  database = Redacted.value(await inScope(freshDatabase))
  product = await startProduct(database, { POSTHASTE_CONCURENCY: "5", POSTHASTE_LOG_FORMAT: "text" })
})

afterAll(async () => {
  if (product?.process.exitCode === null) await product.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(home, { recursive: true, force: true })
})

describe("the page", () => {
  it("has at least 25 mistakes, numbered in a row", () => {
    expect(lines.size).toBeGreaterThanOrEqual(25)
    expect([...lines.keys()]).toEqual(Array.from({ length: lines.size }, (_, index) => index + 1))
  })
})

/** A copy of the program alone, in a directory that looks like a fresh clone. */
const clone = (name: string) => {
  const directory = join(home, name)
  mkdirSync(join(directory, "bin"), { recursive: true })
  cpSync(join(root, "bin/posthaste"), join(directory, "bin/posthaste"))
  return directory
}

const runIn = (directory: string, path: string) =>
  runProgramToEnd("/bin/sh", [join(directory, "bin/posthaste"), "serve"], { PATH: path })

describe("an installation that is not complete", () => {
  it("says that the packages are missing", async () => {
    expectLine(1, await runIn(clone("bare"), process.env["PATH"]!))
  })

  it("says that the machine's Node is too old", async () => {
    const directory = clone("old")
    mkdirSync(join(directory, "node_modules/effect"), { recursive: true })
    // What an old Node answers to the two questions it is asked.
    const node = join(directory, "node")
    writeFileSync(node, '#!/bin/sh\n[ "$1" = --version ] && echo v20.20.2\n[ "$1" = --version ]\n')
    chmodSync(node, 0o755)
    for (const tool of ["dirname", "readlink"]) symlinkSync(`/usr/bin/${tool}`, join(directory, tool))
    expectLine(2, await runIn(directory, directory))
  })

  it("says that libraries of the built-in PostgreSQL are missing", async () => {
    const said = "initdb: error while loading shared libraries: libpq.so.5: cannot open shared object file"
    const command = { file: "/bin/sh", args: ["-c", `echo '${said}' >&2; exit 127`], options: { cwd: "/", env: {} } }
    const { message } = await Effect.runPromise(Effect.flip(runProgram(command)))
    expect(message).toMatch(patternOf(3))
  })
})

describe("a start that can't be", () => {
  const serve = (env: Record<string, string>) =>
    posthaste({ PORT: "0", POSTHASTE_DATA_DIR: absent, ...compileCache, ...env })(["serve"])

  it("says what to do about its settings", async () => {
    const mistakes: ReadonlyArray<readonly [number, Record<string, string>]> = [
      [5, { PORT: "http" }],
      [7, { POSTHASTE_ROLES: "api,workers" }],
      [8, { DATABASE_URL: "mysql://127.0.0.1/x" }],
      [9, { DATABASE_URL: database }],
      [10, { DATABASE_URL: database, ...keys, POSTHASTE_ENCRYPTION_KEY: "abc" }]
    ]
    await Promise.all(mistakes.map(async ([number, env]) => expectLine(number, await serve(env))))
  })

  it("says what to do about its data directory, also where a file system takes none", async () => {
    const file = join(home, "a-file")
    writeFileSync(file, "")
    for (const directory of [file, join(file, "below"), "/proc/posthaste/data"])
      expectLine(17, await serve({ POSTHASTE_DATA_DIR: directory }))
  })

  it("says what to do about its database", async () => {
    const at = (change: (url: URL) => void) => {
      const url = new URL(database)
      change(url)
      return { DATABASE_URL: url.href, ...keys }
    }
    const mistakes: ReadonlyArray<readonly [number, Record<string, string>]> = [
      [11, { DATABASE_URL: "postgres://u:p@127.0.0.1:1/x", ...keys }],
      [12, { DATABASE_URL: "postgres://u:p@no-such-host.invalid/x", ...keys }],
      [13, at((url) => (url.password = "wrong"))],
      [14, at((url) => (url.pathname = "/no_such_database"))]
    ]
    await Promise.all(mistakes.map(async ([number, env]) => expectLine(number, await serve(env))))
  })

  it("says what to do about its address", async () => {
    const taken = createServer().listen(0, "127.0.0.1")
    await new Promise((resolve) => taken.once("listening", resolve))
    const port = String((taken.address() as AddressInfo).port)
    const given = { DATABASE_URL: database, ...keys }
    const [onTaken, elsewhere] = await Promise.all([
      serve({ ...given, PORT: port }),
      serve({ ...given, HOST: "192.0.2.1" })
    ])
    taken.close()
    expectLine(4, onTaken)
    expectLine(6, elsewhere)
  })

  it("names a variable that is misspelt, and starts", () => {
    const line = product
      .printed()
      .split("\n")
      .find((each) => each.includes("POSTHASTE_CONCURENCY"))
    expect(line?.slice(line.indexOf("POSTHASTE_CONCURENCY"))).toMatch(patternOf(15))
  })
})

describe("the command line", () => {
  const given = () => ({ POSTHASTE_URL: product.url!, POSTHASTE_DATA_DIR: absent, ...compileCache })
  const operator = () => ({ ...given(), POSTHASTE_OPERATOR_KEY: operatorKey, POSTHASTE_ORG: "acme" })

  it("says what to do", async () => {
    const mistakes: ReadonlyArray<readonly [number, Record<string, string>, ReadonlyArray<string>]> = [
      [18, { ...operator(), POSTHASTE_URL: "http://127.0.0.1:9" }, ["stats"]],
      [19, given(), ["stats"]],
      [20, { ...given(), POSTHASTE_API_KEY: "somebody-elses-key" }, ["stats"]],
      [21, { ...given(), POSTHASTE_OPERATOR_KEY: operatorKey }, ["stats"]],
      [22, operator(), ["send", "--to", "https://shop.example/hook", "--payload", "{}"]],
      [23, operator(), ["send", "--to", "x", "--payload", "{order:4711}"]],
      [24, operator(), ["sned"]]
    ]
    await Promise.all(mistakes.map(async ([number, env, args]) => expectLine(number, await posthaste(env)(args))))
  })

  it("tells of a receiver that refuses the message", async () => {
    const far = await inScope(receiver(() => ({ status: 401 })))
    const { body } = await api(product.url!, "acme")<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })
    const ran = await posthaste(operator())(["send", "--wait", "--to", body.id, "--payload", "{}"])
    expect(ran.out).toMatch(/^FAILED {2}/m)
    expect(ran.out).toMatch(/^why: .*401/m)
    expectLine(25, ran)
  })
})

describe("requests", () => {
  it("are answered with what to do", async () => {
    const auth = { authorization: `Bearer ${operatorKey}`, "x-org-id": "acme" }
    const asJson = { ...auth, "content-type": "application/json" }
    const endpoint = await api(product.url!, "acme")<{ id: string }>("POST", "/webhook-endpoints", {
      url: "https://shop.example/hook"
    })
    const messages = "/api/v1/outbound/messages"
    const message = { channel: "webhook", to: endpoint.body.id, payloadJson: {}, deliverAt: "2999-01-01T00:00:00Z" }
    const post = (headers: Record<string, string>, body: unknown) => ({
      method: "POST",
      headers,
      body: typeof body === "string" ? body : JSON.stringify(body)
    })
    const keyed = { ...asJson, "idempotency-key": "first" }
    await fetch(`${product.url}${messages}`, post(keyed, message))
    const mistakes: ReadonlyArray<readonly [number, string, RequestInit]> = [
      [26, messages, {}],
      [27, "/outbound/messages", { headers: auth }],
      [28, messages, post(auth, "{}")],
      [29, messages, post(asJson, { ...message, evenType: "order.paid" })],
      [30, "/api/v1/webhook-endpoints", post(asJson, { url: "http://10.0.0.1/hook" })],
      [31, messages, { headers: { authorization: `Bearer ${operatorKey}` } }],
      [32, messages, post(keyed, { ...message, payloadJson: { other: true } })],
      [33, messages, { method: "DELETE", headers: auth }]
    ]
    for (const [number, path, init] of mistakes) {
      const response = await fetch(`${product.url}${path}`, init)
      const { detail } = (await response.json()) as { detail: string }
      expect(detail, String(number)).toMatch(patternOf(number))
      expect(response.status).toBeGreaterThanOrEqual(400)
      expect(response.status).toBeLessThan(500)
    }
  })
})

describe("the mistakes of the page", () => {
  it("were all made here", () => {
    // 16 needs a directory that is in use: start.test.ts has one.
    expect([...tried, 16].toSorted((a, b) => a - b)).toEqual([...lines.keys()])
  })
})
