/** What is wrong with an installation as a whole is told wherever somebody may look, and no longer than it lasts. */
import { rmSync } from "node:fs"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { posthaste } from "../servers/commandLine.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { temporaryDirectory } from "../servers/leftovers.ts"
import { api, operatorKey, product } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"

interface Telling {
  readonly status?: string
  readonly troubles?: ReadonlyArray<{ readonly reason: string; readonly says: string }>
}
const reasonsIn = ({ troubles = [] }: Telling) => troubles.map(({ reason }) => reason).join()

describe("what is wrong as a whole", () => {
  it.live(
    "is told by readiness, stats, explanation and command line, and ends",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        const far = yield* receiver(() => ({ status: 200 }))
        const front = yield* product(url, {
          ...{ POSTHASTE_ROLES: "api", POSTHASTE_METRICS_PORT: "0", POSTHASTE_LOG_FORMAT: "json" }
        })
        const home = temporaryDirectory()
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(home, { recursive: true, force: true })))
        const run = posthaste({
          ...{ POSTHASTE_URL: front.url!, POSTHASTE_OPERATOR_KEY: operatorKey },
          ...{ POSTHASTE_ORG: "acme", POSTHASTE_DATA_DIR: home }
        })
        const call = api(front.url!, "acme")
        const operations = /"metrics and health are served","url":"(http:[^"]+)"/.exec(front.printed())![1]!
        const [to, message] = yield* Effect.promise(async () => {
          const { id } = (await call<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })).body
          const sent = await call<{ id: string }>("POST", "/outbound/messages", {
            ...{ channel: "webhook", to: id, payloadJson: 1 }
          })
          return [id, sent.body.id] as const
        })
        const json = async (address: string) => (await (await fetch(address)).json()) as Telling
        const tellers: Readonly<Record<string, () => Promise<Telling>>> = {
          "readiness of the API": () => json(`${front.url}/readyz`),
          "readiness of the process": () => json(`${operations}/readyz`),
          stats: async () => (await call<Telling>("GET", "/outbound/stats")).body,
          processes: async () => (await call<Telling>("GET", "/processes")).body,
          explanation: async () => (await call<Telling>("GET", `/outbound/messages/${message}/explanation`)).body
        }
        const told = async (reasons: string) => {
          for (const [teller, ask] of Object.entries(tellers)) {
            await expect
              .poll(async () => reasonsIn(await ask()), { message: teller, timeout: 120_000, interval: 100 })
              .toBe(reasons)
          }
          // The process that is asked works all the same.
          expect((await fetch(`${front.url}/readyz`)).status).toBe(200)
          expect((await fetch(`${operations}/readyz`)).status).toBe(200)
        }

        yield* Effect.promise(async () => {
          await told("NO_WORKER,NO_PROJECTOR")
          const status = await run(["status"])
          expect(status).toMatchObject({ code: 1, out: expect.stringMatching(/^alive +\S+ \d+ +api .*NO_WORKER: /s) })
          expect((await run(["stats"])).err).toMatch(/^NO_WORKER: .*\nNO_PROJECTOR: /m)
          expect((await run(["show", message])).out).toMatch(
            /^why: no process that sends messages.*^beside: NO_PROJECTOR: /ms
          )
        })

        const rest = yield* product(url, { POSTHASTE_ROLES: "worker,projector" })
        yield* Effect.promise(async () => {
          // No relay, and nobody needs one.
          await told("")
          expect(await run(["status"])).toMatchObject({ code: 0, err: "" })
          expect((await run(["stats"])).err).toBe("")

          const client = new pg.Client({ connectionString: url })
          await client.connect()
          await client.query("select posthaste.send('acme', $1)", [{ channel: "webhook", to, payloadJson: 2 }])
          await client.end()
          await told("NO_RELAY")
        })
        const relay = yield* product(url, { POSTHASTE_ROLES: "relay" })
        yield* Effect.promise(async () => {
          await told("")
          // One that vanishes is missed after a while, since it was last seen.
          await rest.kill()
          await told("NO_WORKER,NO_PROJECTOR")
          const { body } = await call<{ items: ReadonlyArray<object>; troubles: ReadonlyArray<object> }>(
            "GET",
            "/processes"
          )
          expect(body.troubles).toMatchObject([{ since: expect.stringMatching(/Z$/) }, {}])
          await relay.stop()
        })
      }),
    600_000
  )
})
