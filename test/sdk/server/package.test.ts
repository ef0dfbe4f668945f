/**
 * The package as it is published: packed, installed into a fresh project, and every example of its README run there, against a
 * running Posthaste and a real PostgreSQL.
 */
import { execFile, execFileSync, spawn } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Redacted } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { build } from "../../../sdk/build.ts"
import { signingKey, signStandard } from "../../../src/adapters/channels/webhook/signature.ts"
import { lastingPort } from "../../servers/lastingPort.ts"
import { temporaryDirectory } from "../../servers/leftovers.ts"
import { api, type Product, startProduct } from "../../servers/product.ts"
import { testDatabase } from "./database.ts"

const execute = promisify(execFile)
const root = join(import.meta.dirname, "../../..")
const secret = `whsec_${Buffer.alloc(24, 3).toString("base64")}`
const database = testDatabase("create table received (id text, payload jsonb)")

/** The examples, by the name in their first line. */
const examples = new Map(
  [...readFileSync(join(root, "sdk/README.md"), "utf8").matchAll(/^```[jt]s\n\/\/ (\S+)\n(.*?)^```/gms)].map(
    ([, name, code]) => [name!, code!]
  )
)

/** What an example says that it prints. */
const printed = (code: string) => [...code.matchAll(/^ *console\.log\(.*\) \/\/ (.*)$/gm)].map(([, text]) => text!)

let home = ""
let project = ""
let posthaste: Product
let receiver: Server
let env: Record<string, string> = {}

beforeAll(async () => {
  home = temporaryDirectory()
  project = join(home, "project")
  mkdirSync(project)
  build()
  npm(join(root, "sdk"), "pack", "--pack-destination", home)
  writeFileSync(join(project, "package.json"), `{"private": true}\n`)
  npm(project, "install", "--offline", "--no-audit", "--no-fund", join(home, packed()))
  // Its users' own dependencies, which are ours already: nothing is fetched while tests run.
  for (const name of ["pg", "express", "fastify", "hono", "@hono/node-server", "@types/node", "@types/pg"]) {
    const link = join(project, "node_modules", name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(root, "node_modules", name), link)
  }
  for (const [name, code] of examples) {
    mkdirSync(dirname(join(project, name)), { recursive: true })
    writeFileSync(join(project, name), code)
  }

  receiver = createServer((request, response) => request.resume().on("end", () => response.writeHead(204).end()))
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
  posthaste = await startProduct(database().url, {})
  const endpoint = await api(posthaste.url!, "default")<{ id: string }>("POST", "/webhook-endpoints", {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  })
  const key = await api(posthaste.url!, "default")<{ key: string }>("POST", "/api-keys", {
    orgId: "default",
    name: "sdk"
  })
  env = {
    PATH: process.env["PATH"] ?? "",
    POSTHASTE_URL: posthaste.url!,
    POSTHASTE_API_KEY: key.body.key,
    DATABASE_URL: database().url,
    ENDPOINT_ID: endpoint.body.id,
    WEBHOOK_SECRET: secret
  }
})

afterAll(async () => {
  await posthaste?.stop()
  receiver?.close()
  if (home !== "") rmSync(home, { recursive: true, force: true })
})

const npm = (cwd: string, ...args: ReadonlyArray<string>) =>
  execFileSync("npm", args, { cwd, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" })

const packed = () => readdirSync(home).find((name) => name.endsWith(".tgz"))!

/** Runs a program in the project to its end, and answers its lines. */
const run = async (command: string, ...args: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const { stdout } = await execute(command, args, { cwd: project, env, timeout: 240_000 }).catch((error) => {
    throw new Error(`${args.join(" ")} ended with ${error.code}:\n${error.stdout}${error.stderr}`)
  })
  return stdout.split("\n").filter((line) => line !== "")
}

const send = () => {
  const message = { channel: "webhook", to: env["ENDPOINT_ID"], payloadJson: {} }
  return api(posthaste.url!, "default")("POST", "/outbound/messages", message)
}

/** An example's data, so that another run of it begins anew. */
const forget = () =>
  database().pool.query(
    "drop table if exists orders, invoices, stock, posthaste_inbox, posthaste_saga, posthaste_saga_event"
  )

describe("the package", () => {
  it("is small, and needs no other", () => {
    expect(statSync(join(home, packed())).size).toBeLessThanOrEqual(40 * 1024)
    const { dependencies, peerDependencies, optionalDependencies, ...manifest } = JSON.parse(
      readFileSync(join(project, "node_modules/posthaste/package.json"), "utf8")
    )
    expect([dependencies, peerDependencies, optionalDependencies]).toEqual([undefined, undefined, undefined])
    expect(Object.keys(manifest.exports)).toEqual([
      ".",
      "./outbox",
      "./inbox",
      "./saga",
      "./webhooks",
      "./package.json"
    ])
    expect(readdirSync(join(project, "node_modules")).filter((name) => name.startsWith("posthaste"))).toEqual([
      "posthaste"
    ])
  })

  it("imports nothing from Node but what the webhooks need of Node 18", () => {
    const dist = join(project, "node_modules/posthaste/dist/esm")
    const imports = readdirSync(dist)
      .filter((name) => name.endsWith(".js"))
      .flatMap((name) => [
        ...readFileSync(join(dist, name), "utf8").matchAll(/"(node:\w+)"|\b(Buffer|process|require)\b/g)
      ])
      .map(([found]) => found)
    expect(imports).toEqual([`"node:crypto"`])
  })
})

const scripts = [...examples.keys()].filter((name) => /^(?!express|fastify|hono|worker).*\.[mc]js$/.test(name))

describe.each([
  ["Node", process.execPath],
  ["Bun", join(root, "node_modules/.bin/bun")]
])("the README in %s", (_, command) => {
  it.each(scripts)("runs %s, which prints what it says", async (name) => {
    await forget()
    const said = printed(examples.get(name)!)
    // Something to follow.
    const sending = setInterval(send, 200)
    const lines = await run(command, name).finally(() => clearInterval(sending))
    expect(lines).toEqual(expect.arrayContaining(said))
    expect(lines.filter((line) => said.includes(line))).toEqual(said)
  })
})

describe("TypeScript", () => {
  const tsconfig = (module: string, moduleResolution: string) =>
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        module,
        moduleResolution,
        target: "es2022",
        outDir: "out",
        types: ["node"],
        lib: ["es2022", "dom"]
      },
      files: ["typed.ts", "app/hooks/route.ts"]
    })

  it.each([
    ["nodenext", "nodenext"],
    ["esnext", "bundler"]
  ])(
    "compiles the examples strictly with %s and %s, declarations of the package included",
    async (module, resolution) => {
      writeFileSync(join(project, "tsconfig.json"), tsconfig(module, resolution))
      writeFileSync(join(project, "package.json"), `{"private": true, "type": "module"}\n`)
      expect(await run(join(root, "node_modules/.bin/tsc"), "-p", ".")).toEqual([])
    }
  )

  it("runs what was compiled", async () => {
    await forget()
    expect(await run(process.execPath, "out/typed.js")).toEqual(printed(examples.get("typed.ts")!))
  })

  it("knows the package from CommonJS, too", async () => {
    writeFileSync(
      join(project, "common.cts"),
      `import { verify } from "posthaste/webhooks"\nexport const one: number = verify\n`
    )
    const options = ["--strict", "--module", "nodenext", "--noEmit", "--types", "node", "--ignoreConfig", "common.cts"]
    await expect(run(join(root, "node_modules/.bin/tsc"), ...options)).rejects.toThrow(
      /Type '<Payload.*is not assignable to type 'number'/
    )
  })

  it("refuses what the API does not take", async () => {
    const wrong = `import { Posthaste } from "posthaste"
      new Posthaste({ url: "", apiKey: "" }).messages.send({ channel: "webhook", to: "x", payload: 1 })`
    writeFileSync(join(project, "wrong.mts"), wrong)
    const options = ["--strict", "--module", "nodenext", "--noEmit", "--types", "node", "--ignoreConfig", "wrong.mts"]
    await expect(run(join(root, "node_modules/.bin/tsc"), ...options)).rejects.toThrow(/'payload' does not exist/)
  })
})

describe("a receiver", () => {
  const webhook = (id: string, body: string, key = secret) => {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = signStandard([signingKey(Redacted.make(key))], id, timestamp, Buffer.from(body))
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature }
    return { method: "POST", headers: { ...headers, "content-type": "application/json" }, body }
  }

  const takesOnce = async (name: string, post: (request: RequestInit) => Promise<Response>) => {
    const body = `{"order":  4711, "total": 1.10}`
    const statuses = []
    for (const request of [
      webhook(name, body),
      webhook(name, body),
      webhook(`${name}-2`, body, `whsec_${Buffer.alloc(24, 9).toString("base64")}`)
    ]) {
      statuses.push((await post(request)).status)
    }
    expect(statuses).toEqual([204, 204, 401])
    const { rows } = await database().pool.query("select payload from received where id like $1", [`${name}%`])
    expect(rows).toEqual([{ payload: { order: 4711, total: 1.1 } }])
  }

  // What Next.js does with a route handler.
  const next = `import { serve } from "@hono/node-server"
    import { POST } from "./out/app/hooks/route.js"
    serve({ fetch: (request) => POST(request), port: Number(process.env.PORT) })`

  it.each(["express", "fastify", "hono", "next"])(
    "in %s takes each webhook once and believes no stranger",
    async (name) => {
      writeFileSync(join(project, "next.mjs"), next)
      const port = await lastingPort()
      const own = { cwd: project, env: { ...env, PORT: String(port) }, stdio: "inherit" } as const
      const server = spawn(process.execPath, [`${name}.mjs`], own)
      try {
        const url = `http://127.0.0.1:${port}/hooks`
        const isUp = () =>
          fetch(url).then(
            () => true,
            () => false
          )
        while (!(await isUp())) {
          expect(server.exitCode).toBeNull()
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
        await takesOnce(name, (request) => fetch(url, request))
      } finally {
        server.kill("SIGKILL")
      }
    }
  )

  it("in an edge worker has nothing but the web's own globals, and needs no more", async () => {
    const worker = `
      import { createContext, SourceTextModule } from "node:vm"
      import { readFileSync } from "node:fs"
      const globals = { crypto, TextEncoder, TextDecoder, Uint8Array, Response, Request, Headers, atob, URL }
      const context = createContext(globals)
      const load = (path) => new SourceTextModule(readFileSync(path, "utf8"), { context, identifier: path })
      const files = { "posthaste/webhooks": "webhooks.js", "./errors.js": "errors.js", "./webCrypto.js": "webCrypto.js" }
      const linked = {}
      const link = (name) => (linked[name] ??= load("node_modules/posthaste/dist/esm/" + files[name]))
      const module = load("worker.mjs")
      await module.link(link)
      await module.evaluate()
      const [url, init] = JSON.parse(process.argv[1])
      const answer = await module.namespace.default.fetch(new Request(url, init), { WEBHOOK_SECRET: process.env.WEBHOOK_SECRET })
      console.log(answer.status, await answer.text())`
    writeFileSync(join(project, "edge.mjs"), worker.replace("process.argv[1]", "process.argv[2]"))
    const call = (request: object) =>
      run(
        process.execPath,
        "--no-warnings",
        "--experimental-vm-modules",
        "edge.mjs",
        JSON.stringify(["http://edge/", request])
      )
    expect(await call(webhook("edge", `{"order":4711}`))).toEqual([`200 {"took":4711}`])
    expect((await call({ ...webhook("edge", `{"order":4711}`), body: `{"order":4712}` }))[0]).toMatch(
      /^401 No signature fits/
    )
  })
})
