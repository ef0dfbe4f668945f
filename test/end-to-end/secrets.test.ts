/**
 * Secrets in every field of every kind of destination, and far sides that repeat all they were sent and all they know. None of
 * the secrets is found again: in no row of no table, no answer of the API, no line of the log, no metric and no trace.
 */
import { createHmac, randomBytes } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe, expect } from "vitest"
import { selfSigned } from "../adapters/channels/net/certificate.ts"
import { posthaste } from "../servers/commandLine.ts"
import { dumpOf } from "../servers/dump.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { otlpReceiver } from "../servers/otlpReceiver.ts"
import { api, operatorKey, product } from "../servers/product.ts"
import { until } from "../servers/until.ts"

/** Texts that nothing else holds, by the field that they are the secret of. */
const marks = new Map<string, string>()
const mark = (field: string) => {
  const text = `mark${randomBytes(8).toString("hex")}`
  marks.set(field, text)
  return text
}

const base64 = (text: string) => Buffer.from(text).toString("base64")

/** Where a mark is found in a text, as it is or encoded. Not by the code under test. */
const tells = (text: string): ReadonlyArray<string> => {
  const lower = text.toLowerCase()
  return [...marks].flatMap(([field, secret]) => {
    const cores = [0, 1, 2].map((before) => {
      const whole = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]).toString("base64")
      return whole.slice(before === 0 ? 0 : before + 1, -4)
    })
    const forms = [secret, Buffer.from(secret).toString("hex"), ...cores]
    const at = forms.map((form) => lower.indexOf(form.toLowerCase())).find((place) => place !== -1)
    return at === undefined ? [] : [`${field}: …${text.slice(Math.max(0, at - 60), at + 60)}…`]
  })
}

/** Repeats what it was sent, in every way that answers are written, and what it knows beside. */
const echo = (request: IncomingMessage, body: string, known: ReadonlyArray<string>) => {
  const whole = JSON.stringify({ url: request.url, headers: request.rawHeaders, body, known })
  const texts = [...Object.values(request.headers).map(String), ...known]
  return {
    text: JSON.stringify({
      whole,
      headers: request.headers,
      url: request.url,
      body,
      known,
      escaped: whole.replaceAll("/", "\\/"),
      base64: base64(whole),
      url64: Buffer.from(`..${whole}`).toString("base64url"),
      percent: encodeURIComponent(whole),
      hex: Buffer.from(whole).toString("hex"),
      html: whole.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;"),
      each: texts.map((text) => [text, base64(text), encodeURIComponent(text), Buffer.from(text).toString("hex")])
    }),
    headers: Object.fromEntries(
      texts.slice(0, 24).map((text, n) => [`x-echo-${n}`, encodeURI(text.replaceAll("\n", " ")).slice(0, 400)])
    )
  }
}

/** What the far side of a kind of destinations knows of each. */
interface Known {
  readonly endpoint: ReadonlyArray<string>
  readonly target: ReadonlyArray<string>
  readonly meta: ReadonlyArray<string>
}

/** `/endpoint/<status>` and `/target/<status>` answer so, with an echo; below `/v<version>/` it is Meta. */
const farSide = (all: Known) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const heard: Array<string> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const body = Buffer.concat(chunks).toString("utf8")
          heard.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)} ${body}`)
          const [, first = "", number = "", messages] = new URL(request.url!, "http://far").pathname.split("/")
          const known = first === "endpoint" ? all.endpoint : first === "target" ? all.target : all.meta
          const { text, headers } = echo(request, body, known)
          if (!first.startsWith("v")) return response.writeHead(Number(number), headers).end(text)
          if (messages === undefined) return response.writeHead(200).end(JSON.stringify({ id: number }))
          // The one number takes messages, under an id that is a secret; the other refuses.
          return number === "1001"
            ? response.writeHead(200, headers).end(`{"messages":[{"id":"wamid.${known.join(".")}"}],"echo":${text}}`)
            : response.writeHead(400, headers).end(`{"error":{"code":131026,"message":${JSON.stringify(text)}}}`)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard, server }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      })
  )

type Listed = { readonly items: ReadonlyArray<{ readonly id: string }> }

describe("the secrets of destinations", () => {
  it.live("come back in nothing that is stored, answered, logged, counted or traced", () =>
    Effect.gen(function* () {
      const signing = `whsec_${base64(`${mark("signing secret")} that is shared`)}`
      const pair = selfSigned("client.example")
      const keyLine = pair.key.split("\n")[1]!
      marks.set("client key", keyLine)
      const whatsApp = {
        accessToken: mark("access token"),
        appSecret: mark("app secret"),
        verifyToken: mark("verify token")
      }
      const password = mark("amqp password")
      const known = { endpoint: [signing, pair.key], target: [], meta: Object.values(whatsApp) }
      const far = yield* farSide(known)
      const collector = yield* otlpReceiver
      const database = Redacted.value(yield* freshDatabase)
      const server = yield* product(database, {
        POSTHASTE_LOG_LEVEL: "debug",
        POSTHASTE_LOG_FORMAT: "json",
        POSTHASTE_METRICS_PORT: "0",
        WHATSAPP_BASE_URL: far.url,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: "200"
      })
      yield* Effect.promise(async () => {
        const call = api(server.url!, "acme")
        const answers: Array<string> = []
        const asked = async (method: string, path: string, body?: unknown, expected?: number) => {
          const answer = await call<{ id: string } & Listed>(method, path, body)
          answers.push(`${method} ${path} ${JSON.stringify(answer.body)}`)
          if (expected !== undefined) expect([path, answer.status]).toEqual([path, expected])
          return answer.body
        }

        // Destinations of every kind, each with a mark in every field that is a secret.
        const retry = { strategy: "fixed", baseMs: 10, attemptsMax: 2 }
        const headersOf = (kind: string) => ({
          authorization: `Bearer ${mark(`${kind} bearer`)}`,
          "x-basic": `Basic ${base64(`shop:${mark(`${kind} basic`)}`)}`,
          "x-key": mark(`${kind} header`),
          cookie: `a=1; session=${mark(`${kind} cookie`)}`
        })
        const made: Array<{
          readonly kind: string
          readonly channel: string
          readonly id: string
          readonly to?: string
        }> = []
        for (const status of [200, 404, 503]) {
          const endpoint = await call<{ id: string }>("POST", "/webhook-endpoints", {
            url: `${far.url}/endpoint/${status}?sig=${mark(`endpoint ${status} parameter`)}`,
            headers: headersOf(`endpoint ${status}`),
            secret: signing,
            clientCertificate: pair.cert + pair.key,
            retry
          })
          expect(endpoint.status).toBe(201)
          made.push({ kind: "webhook-endpoints", channel: "webhook", id: endpoint.body.id })
          const target = await asked(
            "POST",
            "/http-targets",
            {
              url: `${far.url}/target/${status}?v=1&key=${mark(`target ${status} parameter`)}`,
              headers: {
                ...headersOf(`target ${status}`),
                "x-named": "Token {{token}}",
                "x-mixed": `k.${mark(`mixed ${status}`)}.{{token}}`
              },
              bodyFields: { key: "{{body}}" },
              secrets: { token: mark(`target token ${status}`), body: `"/${mark(`target body ${status}`)}&<>` },
              idempotency: status === 503 ? "none" : "header",
              ...(status === 503 && {
                reconcile: { url: `${far.url}/target/404/{messageId}?key=${mark("reconcile parameter")}` }
              }),
              retry
            },
            201
          )
          made.push({ kind: "http-targets", channel: "http", id: target.id })
        }
        const broker = await asked("POST", "/amqp-targets", {
          ...{ url: `amqp://shop:${password}@127.0.0.1:${new URL(far.url).port}/`, exchange: "orders", retry }
        })
        made.push({ kind: "amqp-targets", channel: "amqp", id: broker.id })
        for (const phoneNumberId of ["1001", "1002"]) {
          const given = { phoneNumberId, ...whatsApp, reconcile: { waitMs: 1_000, otherwise: "deadLetter" }, retry }
          const account = await asked("POST", "/whatsapp-accounts", given, 201)
          made.push({ kind: "whatsapp-accounts", channel: "whatsapp", id: account.id, to: "+4915112345678" })
        }
        const alerts = await asked("POST", "/alert-targets", {
          ...{
            type: "pagerduty",
            url: `${far.url}/target/200?key=${mark("alert parameter")}`,
            routingKey: `${mark("routing key")}${"0".repeat(12)}`
          }
        })
        await asked("POST", `/alert-targets/${alerts.id}/test`)

        // A message to each, and what becomes of it.
        const messages: Array<string> = []
        for (const { channel, id, to = id } of made) {
          const payloadJson = channel === "whatsapp" ? { text: "Hello", from: id } : { n: messages.length }
          messages.push((await asked("POST", "/outbound/messages", { channel, to, payloadJson, retry }, 201)).id)
        }
        await until("the test of the alert target", () =>
          far.heard.some((one) => one.includes(marks.get("routing key")!))
        )
        const ended = ["DELIVERED", "FAILED", "DEAD_LETTER", "SENT"]
        for (const id of messages) {
          await until(`the end of ${id}`, async () => {
            const { body } = await call<{ status: string }>("GET", `/outbound/messages/${id}`)
            return ended.includes(body.status)
          })
        }

        // Meta reports, and repeats what it knows.
        const notice = JSON.stringify({
          entry: [
            {
              changes: [
                {
                  value: {
                    metadata: { phone_number_id: "1001" },
                    statuses: ["sent", "unheard-of"].map((status) => ({
                      ...{ id: `wamid.${whatsApp.accessToken}`, status, timestamp: "1700000000" },
                      errors: [{ code: 131026, title: Object.values(whatsApp).join(" ") }]
                    }))
                  }
                }
              ]
            }
          ]
        })
        const signature = `sha256=${createHmac("sha256", whatsApp.appSecret).update(notice).digest("hex")}`
        const reported = await fetch(`${server.url}/api/v1/webhooks/whatsapp/inbound`, {
          ...{ method: "POST", body: notice },
          headers: { "x-hub-signature-256": signature, "content-type": "application/json" }
        })
        expect(reported.status).toBe(200)

        // Changes that are refused, and one that is not.
        const [endpoint, target] = made as [(typeof made)[0], (typeof made)[0]]
        const moved = { url: "https://elsewhere.example/" }
        const refused = await call<{ errors: ReadonlyArray<{ field: string }> }>(
          "PATCH",
          `/webhook-endpoints/${endpoint.id}`,
          moved
        )
        expect([refused.status, refused.body.errors.map(({ field }) => field)]).toEqual([
          422,
          ["headers", "clientCertificate"]
        ])
        answers.push(JSON.stringify(refused.body))
        await asked("PATCH", `/http-targets/${target.id}`, moved, 422)
        await asked("PATCH", `/amqp-targets/${broker.id}`, { url: "amqp://shop@elsewhere.example/" }, 422)
        await asked("PATCH", `/alert-targets/${alerts.id}`, moved, 422)
        await asked(
          "PATCH",
          `/webhook-endpoints/${endpoint.id}`,
          { headers: { "x-key": mark("a header's successor") } },
          200
        )
        const wrong = { accessToken: `${mark("a wrong token")} with blanks`, appSecret: "" }
        await asked("PATCH", `/whatsapp-accounts/${made.at(-1)!.id}`, wrong, 400)

        // Everything there is to read.
        const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
          readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
        }
        const subjects = [...made.map(({ id }) => id), ...messages, alerts.id]
        const journals = [
          ...messages.map((id) => `message-${id}`),
          ...made.map(({ kind, id }) => `${kind.replace("webhook-", "").slice(0, -1)}-${id}`),
          ...made.map(({ id }) => `circuit-${id}`)
        ]
        const reads = Object.keys(document.paths).filter(
          (path) =>
            "get" in document.paths[path]! &&
            path.startsWith("/api/v1/") &&
            // What shows a secret to its owner, and what does not end.
            !/\/secret$|\/stream$|\/feed$|\/webhooks\//.test(path)
        )
        expect(reads.length).toBeGreaterThan(40)
        const idsFor = (path: string): ReadonlyArray<string> => {
          const [kind] = path.slice(1).split("/")
          if (kind === "streams") return journals
          if (kind === "outbound") return messages
          if (kind === "alert-targets") return [alerts.id]
          const own = made.filter((each) => each.kind === kind).map(({ id }) => id)
          return own.length > 0 ? own : subjects
        }
        for (const path of reads.map((one) => one.replace("/api/v1", ""))) {
          const places = path.includes("{") ? idsFor(path).map((name) => path.replace(/\{\w+\}/, name)) : [path]
          await Promise.all(places.filter((place) => !place.includes("{")).map((place) => asked("GET", place)))
        }
        const shown = answers.find((answer) => answer.includes(`GET /http-targets/${target.id} `))!
        expect(shown).toContain('"x-named":"Token {{token}}"')
        expect(shown).toContain('"x-mixed":"***{{token}}"')
        expect(shown).toContain('"authorization":"***"')
        const attempts = answers.filter((answer) => /GET \/outbound\/messages\/[^/]+\/attempts /.test(answer))
        expect(attempts.filter((answer) => answer.includes("x-echo-0")).length).toBeGreaterThanOrEqual(7)
        expect(attempts.filter((answer) => answer.includes("***")).length).toBeGreaterThanOrEqual(7)

        // The far side was told all of it, or the test would show nothing.
        const told = far.heard.join("\n") + Object.values(known).flat().join("\n")
        const untold = [...marks].filter(([field, text]) => {
          if (/successor|wrong|password|signing/.test(field)) return false
          return !told.includes(text) && !told.includes(base64(`shop:${text}`))
        })
        expect(untold).toEqual([])

        expect(tells(answers.join("\n"))).toEqual([])
        expect(tells(await dumpOf(database))).toEqual([])
        const metrics = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${operatorKey}` } })
        expect(metrics.status).toBe(200)
        expect(tells(await metrics.text())).toEqual([])
        const run = posthaste({
          POSTHASTE_URL: server.url!,
          POSTHASTE_OPERATOR_KEY: operatorKey,
          POSTHASTE_ORG: "acme"
        })
        for (const args of [
          ["show", messages[1]!, "--headers"],
          ["attempts", messages[1]!],
          ["destinations", "list"]
        ]) {
          const { out, err } = await run(args)
          expect(tells(out + err)).toEqual([])
        }
        await server.stop()
        expect(server.printed()).toContain("debug")
        expect(tells(server.printed())).toEqual([])
        expect(collector.bodies.length).toBeGreaterThan(0)
        expect(tells(collector.bodies.map((body) => body.toString("latin1")).join("\n"))).toEqual([])
      })
    })
  )
})
