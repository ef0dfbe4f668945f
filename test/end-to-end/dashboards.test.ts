/**
 * The dashboards and rules in deploy/, against a real Prometheus that scrapes a running Posthaste under load: every query
 * answers with data, what is scraped and the rules are clean, and alerts fire when something is wrong and end with it. That
 * each alert waits as long as it should is tested by promtool (deploy/prometheus/posthaste.rules.test.yml).
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { ownDirectory } from "../servers/leftovers.ts"
import { api, type Product, product, startProduct } from "../servers/product.ts"
import { prometheus, promtool } from "../servers/prometheus.ts"
import { receiver } from "../servers/receiver.ts"

const deploy = join(import.meta.dirname, "../../deploy")
const rulesFile = join(deploy, "prometheus/posthaste.rules.yml")
const rules = readFileSync(rulesFile, "utf8")

interface Dashboard {
  readonly title: string
  readonly uid: string
  readonly panels: ReadonlyArray<{
    readonly title: string
    readonly targets: ReadonlyArray<{ readonly expr: string }>
  }>
}

const dashboards = readdirSync(join(deploy, "grafana"))
  .filter((file) => file.endsWith(".json"))
  .map((file) => JSON.parse(readFileSync(join(deploy, "grafana", file), "utf8")) as Dashboard)

const queries = dashboards.flatMap(({ title, panels }) =>
  panels.flatMap((panel) => panel.targets.map(({ expr }) => ({ where: `${title}, ${panel.title}`, expr })))
)
const recorded = [...rules.matchAll(/^\s+expr: (.+)$/gm)].map(([, expr]) => expr!)
const alerts = [...rules.matchAll(/^\s+- alert: (\w+)$/gm)].map(([, name]) => name!)

/** Only destinations of WhatsApp put attempts off. */
const isDeferral = (expr: string) => expr.includes("posthaste_deferrals_total")

/** There is no broker here: promtool tries the rule, and a test with a real broker that it is told of. */
const isOfBroker = (expr: string) => expr.includes("posthaste_broker_up")

/** The value an alert compares: an alert that does not fire has no data. */
const comparedOf = (expr: string) => expr.replaceAll(/\s(?:>|<|==) [-\d.*\s]+?(?= and |$)/g, "")

const targetOf = ({ printed }: Product): string =>
  /"metrics and health are served","url":"http:\/\/([^"]+)"/.exec(printed())![1]!

describe("dashboards and rules", () => {
  it.live("are clean for promtool, which also sees each alert fire and end", () =>
    Effect.promise(async () => {
      expect(alerts.length).toBeGreaterThan(10)
      const tested = readFileSync(join(deploy, "prometheus/posthaste.rules.test.yml"), "utf8")
      for (const alert of alerts) {
        expect(tested.match(new RegExp(`alertname: ${alert}$`, "m")), `${alert} fires`).not.toBeNull()
        expect(tested.match(new RegExp(`alertname: ${alert}, exp_alerts: \\[\\]`)), `${alert} ends`).not.toBeNull()
      }
      expect(await promtool(["check", "rules", rulesFile])).toMatchObject({ code: 0 })
      expect(await promtool(["test", "rules", join(deploy, "prometheus/posthaste.rules.test.yml")])).toMatchObject({
        code: 0
      })
      const config = join(deploy, "prometheus/prometheus.yml")
      expect(await promtool(["check", "config", "--syntax-only", config])).toMatchObject({ code: 0 })
    })
  )

  it.live(
    "answer from a Prometheus that scrapes Posthaste under load; alerts fire and end",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        let isBroken = false
        const far = yield* receiver(({ body }, nth) => {
          const { n } = JSON.parse(body) as { n: number }
          return { status: isBroken ? 503 : nth === 1 && n % 5 === 0 ? 500 : 200 }
        })
        const settings = {
          POSTHASTE_METRICS_PORT: "0",
          POSTHASTE_LOG_FORMAT: "json",
          POSTHASTE_CIRCUIT_OPEN_MS: "1000"
        }
        const id = yield* Effect.promise(async () => {
          const before = await startProduct(url, { POSTHASTE_ROLES: "api" })
          const made = await api(before.url!, "acme")<{ id: string }>("POST", "/webhook-endpoints", { url: far.url })
          await before.stop()
          return made.body.id
        })
        const listing = { ...settings, POSTHASTE_METRICS_DESTINATIONS: id }
        const first = yield* product(url, { ...listing, POSTHASTE_ROLES: "api" })
        // One of them reads the figures for all, so all know whom they are about.
        const projector = yield* product(url, { POSTHASTE_ROLES: "projector", POSTHASTE_METRICS_DESTINATIONS: id })
        const worker = yield* product(url, { ...listing, POSTHASTE_ROLES: "worker" })
        const call = api(first.url!, "acme")
        // The same rules, impatient: nobody waits ten minutes in a test.
        const directory = yield* ownDirectory
        const impatient = join(directory, "rules.yml")
        writeFileSync(
          impatient,
          rules
            .replaceAll(/^(\s+for:) \d+m$/gm, "$1 0s")
            .replaceAll(/\[(5m|15m|1h)\]/g, "[10s]")
            .replace("> 300", "> 3")
            .replace("posthaste_projection_lag_seconds) > 60", "posthaste_projection_lag_seconds) > 3")
        )
        const server = yield* prometheus({
          targets: [targetOf(first), targetOf(worker)],
          intervalMs: 500,
          ruleFiles: [impatient]
        })
        // Somebody looks at the database, and goes home.
        const forgotten = new pg.Client({ connectionString: url, application_name: "a long look" })
        yield* Effect.addFinalizer(() => Effect.promise(() => forgotten.end()))
        yield* Effect.promise(async () => {
          await forgotten.connect()
          await forgotten.query("begin isolation level repeatable read")
          await forgotten.query("select 1 from posthaste.ready limit 1")
        })
        const again = yield* Effect.promise(async () => {
          let n = 0
          const send = async (count: number, attemptsMax: number) => {
            const retry = { strategy: "fixed", baseMs: 20, attemptsMax }
            const messages = Array.from({ length: count }, () => ({
              ...{ channel: "webhook", to: id, retry, payloadJson: { n: n++ } }
            }))
            expect((await call("POST", "/outbound/messages/batch", { messages })).status).toBe(200)
          }
          const firing = async () => {
            const { alerts } = await server.api<{
              alerts: ReadonlyArray<{ state: string; labels: { alertname: string } }>
            }>("alerts")
            return alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname)
          }
          const soon = { timeout: 120_000, interval: 500 }

          // Load, with everything a dashboard shows: a retry each, dead letters, refused requests.
          await server.scraped()
          expect((await call("POST", "/outbound/messages", { channel: "webhook" })).status).toBe(400)
          let isLoading = true
          const load = async () => {
            for (let i = 0; isLoading; i++) {
              await send(10, i % 5 === 4 ? 1 : 3).catch(() => {})
              await new Promise((resolve) => setTimeout(resolve, 300))
            }
          }
          const loaded = load()
          const answersOf = async (expr: string) =>
            server.query(comparedOf(expr).replaceAll(/\[(5m|15m|1h)\]/g, "[30s]"))
          await expect.poll(() => server.query("posthaste_projection_lag_seconds"), soon).not.toEqual([])
          await expect.poll(() => server.query("posthaste:delivery_late:ratio_rate1h"), soon).not.toEqual([])
          await server.scraped()
          for (const { where, expr } of queries.filter((one) => !isDeferral(one.expr) && !isOfBroker(one.expr))) {
            const valued = async () =>
              (await answersOf(expr)).filter(({ value }) => Number.isFinite(value) || Number.isNaN(value))
            await expect.poll(valued, { ...soon, message: where }).not.toEqual([])
          }
          for (const expr of recorded.filter((one) => !isOfBroker(one))) {
            await expect.poll(() => answersOf(expr), { ...soon, message: expr }).not.toEqual([])
          }
          for (const one of [first, worker]) {
            const text = await (await fetch(`http://${targetOf(one)}/metrics`)).text()
            expect(await promtool(["check", "metrics"], text)).toEqual({ code: 0, output: "" })
          }

          isLoading = false
          await loaded

          // A receiver that breaks: its circuit opens, and messages wait and end badly.
          isBroken = true
          await send(40, 1)
          await expect.poll(firing, soon).toEqual(expect.arrayContaining(["PosthasteCircuitsOpen"]))
          await send(40, 50)
          await expect.poll(firing, soon).toEqual(expect.arrayContaining(["PosthasteBacklogOld"]))
          isBroken = false
          await expect.poll(firing, soon).not.toEqual(expect.arrayContaining(["PosthasteCircuitsOpen"]))
          await expect.poll(firing, soon).not.toEqual(expect.arrayContaining(["PosthasteBacklogOld"]))

          await expect.poll(firing, soon).toEqual(expect.arrayContaining(["PosthasteLongTransaction"]))
          await forgotten.query("commit")
          await expect.poll(firing, soon).not.toEqual(expect.arrayContaining(["PosthasteLongTransaction"]))

          // The only worker goes away, and the only projector; and somebody needs a relay, of which nobody had heard.
          expect(await firing()).not.toEqual(expect.arrayContaining(["PosthasteNoRelay"]))
          await worker.kill()
          await projector.stop()
          await send(1, 1)
          await forgotten.query("select posthaste.send('acme', $1)", [
            { channel: "webhook", to: id, payloadJson: { n: -1 } }
          ])
          const missed = ["PosthasteNoWorker", "PosthasteNoProjector", "PosthasteNoRelay", "PosthasteProjectionLags"]
          for (const alert of [...missed, "PosthasteDown"])
            await expect.poll(firing, { ...soon, message: alert }).toEqual(expect.arrayContaining([alert]))
          return async () => {
            for (const alert of missed)
              await expect.poll(firing, { ...soon, message: alert }).not.toEqual(expect.arrayContaining([alert]))
          }
        })
        yield* product(url, { POSTHASTE_ROLES: "worker,relay,projector" })
        yield* Effect.promise(again)
      }),
    600_000
  )
})
