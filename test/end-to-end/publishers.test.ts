/**
 * The programs in docs/rabbitmq.md that publish a command, each run as the page shows it, as a process of its own, on a real
 * broker and the whole product. Here it is the one for Node; POSTHASTE_TEST_PUBLISHERS names others, of languages that this
 * machine may not have (docs/development.md).
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { AsyncMessage } from "rabbitmq-client"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { api, product } from "../servers/product.ts"
import { sharedBroker } from "../servers/sharedBroker.ts"
import { until } from "../servers/until.ts"

const COMMANDS = "posthaste.commands"
const root = join(import.meta.dirname, "../..")
const page = readFileSync(join(root, "docs/rabbitmq.md"), "utf8")

/** By the name that the page gives its code: the file that holds it, if it has to be one, and what runs it. */
const languages: Record<string, { readonly file?: string; readonly run: ReadonlyArray<string> }> = {
  python: { run: ["python3", "-"] },
  java: { file: "Send.java", run: ["java"] },
  go: { file: "main.go", run: ["go", "run"] },
  // By its input, so that it finds the modules of this directory.
  js: { run: [process.execPath, "--input-type=module", "-"] }
}

const chosen = (process.env["POSTHASTE_TEST_PUBLISHERS"] ?? "js").split(",")

const programIn = (language: string): string => {
  const found = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))]
  expect(found).toHaveLength(1)
  return found[0]![1]!
}

interface Ended {
  /** 0 when the program says that its command was taken. */
  readonly code: number
  readonly printed: string
}

/** Runs the program of the page to its end. */
const publish = async (language: string, settings: Record<string, string>): Promise<Ended> => {
  const { file, run } = languages[language]!
  const [command, ...args] = run as [string, ...Array<string>]
  const program = programIn(language)
  const directory = mkdtempSync(join(tmpdir(), "posthaste-publisher-"))
  if (file !== undefined) writeFileSync(join(directory, file), program)
  const all = file === undefined ? args : [...args, join(directory, file)]
  try {
    return await new Promise((resolve, reject) => {
      const env = { ...process.env, ...settings }
      const child = execFile(command, all, { cwd: root, env }, (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") return reject(error)
        resolve({ code: Number(error?.code ?? 0), printed: stdout + stderr })
      })
      // One that reads no input may have ended before.
      child.stdin!.on("error", () => {})
      child.stdin!.end(file === undefined ? program : "")
    })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

const broker = sharedBroker()

const isDeclared = () =>
  broker.client.queueDeclare({ queue: COMMANDS, passive: true }).then(
    () => true,
    () => false
  )

describe("a program that publishes commands as the page shows it", () => {
  it.live.each(chosen)(
    "is heard, leaves what the page says in the queue, and fails when nobody took it: %s",
    (language) =>
      Effect.gen(function* () {
        const database = Redacted.value(yield* freshDatabase)
        const { url } = broker.rabbitmq
        const settings = (endpoint: string) => ({ AMQP_URL: url, ORG: "acme", ENDPOINT: endpoint })
        yield* Effect.promise(() => broker.client.queueDelete({ queue: COMMANDS }))

        // The broker confirms what it has no queue for, and gives it back: that is no success.
        const lost = yield* Effect.promise(() => publish(language, settings("nobody")))
        expect(lost.code, lost.printed).not.toBe(0)

        const server = yield* product(database, { AMQP_URL: url, POSTHASTE_ROLES: "api,relay,projector" })
        yield* Effect.promise(async () => {
          await until("the queue is there", isDeclared)
          const call = api(server.url!, "acme")
          const endpoint = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: "http://127.0.0.1:9/" }))
            .body.id
          const publishing = async () => {
            const { code, printed } = await publish(language, settings(endpoint))
            expect(code, printed).toBe(0)
          }

          await publishing()
          const listed = async () => {
            const { body } = await call<{ items: ReadonlyArray<object> }>("GET", "/outbound/messages")
            return body.items
          }
          await until("it is accepted", async () => (await listed()).length > 0)
          expect(await listed()).toMatchObject([{ to: endpoint, channel: "webhook", status: "QUEUED" }])

          await server.stop()
          await publishing()
          // Whoever wants to see what lies in a queue with one active consumer must be that consumer.
          const left: Array<AsyncMessage> = []
          const consumer = broker.client.createConsumer(
            { queue: COMMANDS, queueOptions: { passive: true } },
            (message) => void left.push(message)
          )
          await until("it lies in the queue", () => left.length > 0)
          await consumer.close()
          expect(left).toHaveLength(1)
          const [command] = left
          expect(command).toMatchObject({
            type: "SendMessage",
            messageId: "order-17-paid",
            contentType: "application/json",
            durable: true,
            headers: { "x-org-id": "acme" }
          })
          const body = Buffer.isBuffer(command!.body) ? JSON.parse(String(command!.body)) : command!.body
          expect(body).toEqual({ channel: "webhook", to: endpoint, payloadJson: { order: 17 } })
        })
      })
  )
})
