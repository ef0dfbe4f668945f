import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { startPosthaste, stop } from "../servers/posthaste.ts"
import { receiver } from "../servers/receiver.ts"
import { PATIENCE_MS, pause } from "../servers/until.ts"

const KILLS = 3
const CLIENTS = 8

describe("a database that is killed three times under load", () => {
  it.live(
    "loses no message it answered for, and each caller gets its message once by asking again with its key",
    () =>
      Effect.gen(function* () {
        const far = yield* receiver(() => ({ status: 200, afterMs: 5 }))
        yield* Effect.promise(async () => {
          const home = temporaryDirectory()
          const posthaste = await startPosthaste({
            POSTHASTE_DATA_DIR: home,
            POSTHASTE_ALLOWED_NETWORKS: "127.0.0.0/8",
            POSTHASTE_LEASE_MS: "2000"
          })
          const key = /Key of org default +(\S+)/.exec(posthaste.printed())![1]!
          const call = async (path: string, body?: object, more: Record<string, string> = {}) => {
            const response = await fetch(`${posthaste.url}/api/v1${path}`, {
              headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...more },
              ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
            })
            return {
              status: response.status,
              body: (await response.json()) as { id: string } & Record<string, unknown>
            }
          }
          const endpoint = (await call("/webhook-endpoints", { url: far.url })).body.id
          const retry = { strategy: "fixed", baseMs: 200, attemptsMax: 50 }

          const accepted = new Map<string, string>()
          const answers = new Map<number, number>()
          let sending = true
          const client = async (name: number) => {
            for (let n = 0; sending; n++) {
              const idempotencyKey = `${name}-${n}`
              for (;;) {
                const message = { channel: "webhook", to: endpoint, payloadJson: { idempotencyKey }, retry }
                const { status, body } = await call("/outbound/messages", message, {
                  "idempotency-key": idempotencyKey
                })
                answers.set(status, (answers.get(status) ?? 0) + 1)
                if (status === 201 || status === 200) {
                  accepted.set(idempotencyKey, body.id)
                  break
                }
                expect(status).toBe(503)
                await pause(100)
              }
            }
          }
          const clients = Array.from({ length: CLIENTS }, (_, name) => client(name))
          for (let kill = 0; kill < KILLS; kill++) {
            await pause(1_500)
            const [pid] = readFileSync(join(home, "postgres", "postmaster.pid"), "utf8").split("\n")
            process.kill(Number(pid), "SIGQUIT")
            const before = accepted.size
            while (accepted.size < before + 200) await pause(20)
          }
          sending = false
          await Promise.all(clients)

          const received = () => new Set(far.received.map(({ id }) => id))
          const deadline = Date.now() + PATIENCE_MS
          const delivered = async () =>
            ((await call("/outbound/stats")).body["byStatus"] as Record<string, number>)["DELIVERED"]
          while ((await delivered()) !== accepted.size && Date.now() < deadline) await pause(100)
          const settled = await delivered()
          const code = await stop(posthaste)
          rmSync(home, { recursive: true, force: true })

          console.log(
            `${KILLS} kills: ${accepted.size} accepted, ${received().size} received, ` +
              `${far.received.length - received().size} duplicates, answers ${JSON.stringify([...answers])}`
          )
          expect(code).toBe(0)
          expect([...accepted.values()].toSorted()).toEqual([...received()].toSorted())
          expect(settled).toBe(accepted.size)
          // A kill that nobody noticed would prove nothing.
          expect(answers.get(503)).toBeGreaterThan(0)
        })
      }),
    600_000
  )
})
