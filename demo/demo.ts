/**
 * `npm run demo`: the life of two messages, live. Starts the real Posthaste on data and ports of its own, points
 * it at a receiver that is down, and shows what the API tells meanwhile: sent, failed, retried, dead-lettered;
 * then the receiver recovers, the message is replayed and arrives. The second goes to a phone by way of a stand-in for
 * Meta's WhatsApp API. Leaves nothing behind. Fits a terminal of 80 columns.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, Effect, Redacted, Schema } from "effect"
import { freePort } from "../src/adapters/embedded-postgres/freePort.ts"
import { isSignedBy } from "../src/setup/sample.ts"
import { startupErrorOf } from "../src/setup/startupError.ts"
import { scriptFlags } from "../test/servers/scriptFlags.ts"
import * as StandInMeta from "./meta/StandInMeta.ts"
import * as SampleReceiver from "./SampleReceiver.ts"

scriptFlags({})

class DemoFailed extends Schema.TaggedError<DemoFailed>()("DemoFailed", { message: Schema.String }) {}

// -------------------------------------------------------------------------------------------------- words

const isColoured = process.stdout.isTTY === true
const paint = (code: number) => (text: string) => (isColoured ? `\x1b[${code}m${text}\x1b[0m` : text)
const [bold, dim, red, green, yellow] = [1, 2, 31, 32, 33].map(paint) as [Paint, Paint, Paint, Paint, Paint]
type Paint = ReturnType<typeof paint>

const say = (text: string) => Console.log(`\n${bold(text)}`)

const colourOf = (status: string): Paint =>
  status === "DELIVERED" || status === "SENT" ? green : status === "DEAD_LETTER" || status === "FAILED" ? red : yellow

// ---------------------------------------------------------------------------------------------- posthaste

interface Event {
  readonly version: number
  readonly type: string
  readonly at: string
  readonly status: string
  readonly data: {
    readonly epoch?: number
    readonly attempt?: number
    readonly status?: number | null
    readonly error?: { readonly code: string; readonly message: string } | null
    readonly receipt?: string
    readonly reason?: string | null
    readonly retryAt?: string | null
    readonly proof?: string
  }
}

type Api = <A>(method: "GET" | "POST", path: string, body?: unknown) => Effect.Effect<A, DemoFailed>

/** A Posthaste in a process of its own, and a way to call it. */
const startPosthaste = Effect.fnUntraced(function* (whatsAppBaseUrl: string) {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "posthaste-demo-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true }))
  )
  const port = yield* freePort
  const key = randomBytes(24).toString("base64url")
  const { process: child, said } = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [join(import.meta.dirname, "../src/main.ts")], {
        env: {
          PATH: process.env["PATH"],
          PORT: String(port),
          POSTHASTE_DATA_DIR: join(home, "data"),
          POSTHASTE_OPERATOR_KEY: key,
          POSTHASTE_ALLOWED_NETWORKS: "127.0.0.1/32",
          WHATSAPP_BASE_URL: whatsAppBaseUrl
        },
        // Of its own: Ctrl-C reaches it through us, so that it is stopped once and waited for.
        detached: true,
        stdio: ["ignore", "ignore", "pipe"]
      })
      const said: Array<string> = []
      child.stderr.on("data", (text) => said.push(String(text)))
      return { process: child, said }
    }),
    ({ process: child }) =>
      Effect.promise(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill("SIGTERM")
        await once(child, "exit")
      })
  )

  const api: Api = (method, path, body) =>
    Effect.tryPromise({
      try: async () => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, {
          method,
          headers: { authorization: `Bearer ${key}`, "x-org-id": "demo", "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
        const text = await response.text()
        if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
        return JSON.parse(text)
      },
      catch: (cause) => new DemoFailed({ message: (cause as Error).message })
    })

  while (true) {
    const isReady = yield* api("GET", "/readyz").pipe(
      Effect.as(true),
      Effect.catch(() => Effect.succeed(false))
    )
    if (isReady) return { api, url: `http://127.0.0.1:${port}` }
    if (child.exitCode !== null) return yield* new DemoFailed({ message: said.join("").trim() })
    yield* Effect.sleep("50 millis")
  }
})

// -------------------------------------------------------------------------------------------------- trace

/** Prints each new fact of the message until one of them is the last to wait for. Answers how many facts there are. */
const follow = Effect.fnUntraced(function* (api: Api, id: string, seen: number, isLast: (event: Event) => boolean) {
  let printed = seen
  while (true) {
    const { items } = yield* api<{ items: ReadonlyArray<Event> }>("GET", `/api/v1/outbound/messages/${id}/events`)
    for (const event of items.slice(printed)) yield* Console.log(lineOf(event))
    printed = items.length
    if (items.some(isLast)) return printed
    yield* Effect.sleep("40 millis")
  }
})

const reached =
  (status: string) =>
  (event: Event): boolean =>
    event.status === status

const lineOf = ({ at, status, type, data }: Event): string => {
  const next = data.retryAt ? `, next in ${seconds(Date.parse(data.retryAt) - Date.parse(at))}` : ""
  const columns = [dim(at.slice(11, 23)), colourOf(status)(status.padEnd(11)), type.padEnd(19), whyOf(data)]
  return `  ${columns.join("  ")}${dim(next)}`.trimEnd()
}

const whyOf = ({ attempt, epoch = 1, error, proof, receipt, reason, status }: Event["data"]): string => {
  if (receipt !== undefined) return `"${receipt}", signed by Meta`
  if (error != null) return reason ? `${reason}: ${error.message}` : error.message
  if (reason) return reason
  if (typeof status === "number") return `answered ${status}`
  if (proof !== undefined) return `proof: the ${proof}`
  if (attempt === undefined) return ""
  return epoch > 1 ? `attempt ${attempt} of epoch ${epoch}` : `attempt ${attempt}`
}

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

// --------------------------------------------------------------------------------------------------- demo

const demo = Effect.gen(function* () {
  let secret: Redacted.Redacted | null = null
  let isDown = true
  const receiver = yield* SampleReceiver.start({
    verify: (headers, body) => secret !== null && isSignedBy(secret, headers, body),
    answer: () => (isDown ? 503 : 200)
  })

  const meta = yield* StandInMeta.start({ templates: [{ name: "order_paid", language: "en_US", parameters: 1 }] })

  yield* say("Starting Posthaste with a PostgreSQL of its own …")
  const { api, url } = yield* startPosthaste(meta.url)
  const endpoint = yield* api<{ id: string; secret: string }>("POST", "/api/v1/webhook-endpoints", {
    url: `http://${receiver.address}:${receiver.port}/orders`,
    description: "a shop that is down"
  })
  secret = Redacted.make(endpoint.secret)

  yield* say("The receiver is down (503). A message is sent to it, with 2 retries allowed:\nafter 0.3 s and 0.6 s.")
  const { id } = yield* api<{ id: string }>("POST", "/api/v1/outbound/messages", {
    channel: "webhook",
    to: endpoint.id,
    eventType: "order.paid",
    payloadJson: { order: 4711, total: 99.9 },
    retry: { strategy: "schedule", waitsMs: [300, 600] }
  })
  const facts = yield* follow(api, id, 0, reached("DEAD_LETTER"))

  yield* say("Nothing is lost: it is a dead letter now. The receiver recovers, and the\nmessage is replayed.")
  isDown = false
  yield* api("POST", `/api/v1/outbound/messages/${id}/replay`, { reason: "the shop is up again" })
  yield* follow(api, id, facts, reached("DELIVERED"))

  yield* say("What the receiver saw: the same body, signed, and the same webhook-id each time.")
  for (const { receivedAt, webhookId, signature, answered } of receiver.deliveries().toReversed()) {
    const answer = (answered < 300 ? green : red)(String(answered))
    yield* Console.log(`  ${dim(receivedAt.slice(11, 23))}  ${answer}  ${webhookId}  signature ${signature}`)
  }

  yield* whatsApp(api, url, meta)
  yield* say("Cleaning up …")
})

const whatsApp = Effect.fnUntraced(function* (api: Api, url: string, meta: StandInMeta.StandInMeta) {
  yield* say("A WhatsApp message, through a stand-in for Meta's API: taken by Meta is SENT,\nand not yet delivered.")
  const made = { phoneNumberId: "106540352242922", accessToken: randomBytes(24).toString("base64url") }
  const secrets = { appSecret: randomBytes(16).toString("hex"), verifyToken: randomBytes(16).toString("hex") }
  const webhook = { url: `${url}/api/v1/webhooks/whatsapp/inbound`, ...secrets }
  meta.register({ ...made, displayPhoneNumber: "15550783881", webhook })
  yield* api("POST", "/api/v1/whatsapp-accounts", { ...made, ...secrets })
  if (!(yield* meta.subscribe(made.phoneNumberId))) {
    return yield* new DemoFailed({ message: "Posthaste did not answer Meta's question about the webhook" })
  }
  const { id } = yield* api<{ id: string }>("POST", "/api/v1/outbound/messages", {
    channel: "whatsapp",
    to: "+49 151 12345678",
    templateCode: "order_paid",
    payloadJson: { language: "en_US", components: [{ type: "body", parameters: [{ type: "text", text: "4711" }] }] }
  })
  let facts = yield* follow(api, id, 0, reached("SENT"))
  yield* say("Meta's receipts, signed: the phone has it, and its owner has read it.")
  for (const status of ["sent", "delivered", "read"] as const) {
    yield* Effect.sleep("300 millis")
    yield* meta.tell(made.phoneNumberId, [meta.update(meta.sent[0]!, status)])
    facts = yield* follow(api, id, facts, ({ data }) => data.receipt === status)
  }
})

const reportStartupError = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Console.error(startupErrorOf(cause))

NodeRuntime.runMain(Effect.tapCause(Effect.scoped(demo), reportStartupError), { disableErrorReporting: true })
