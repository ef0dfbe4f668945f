import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { ownDirectory } from "./leftovers.ts"
import { prometheus, promtool } from "./prometheus.ts"
import { until } from "./until.ts"

/** Answers scrapes that know the key. */
const exporter = (metrics: () => string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => {
        const isKnown = request.headers.authorization === "Bearer the-key" && request.url === "/numbers"
        response.writeHead(isKnown ? 200 : 401, { "content-type": "text/plain; version=0.0.4" })
        response.end(isKnown ? metrics() : "")
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { target: `127.0.0.1:${(server.address() as AddressInfo).port}`, server }
    }),
    ({ server }) => Effect.sync(() => server.close().closeAllConnections())
  )

describe("the Prometheus of tests", () => {
  it.live("scrapes what it is told to, answers expressions, and evaluates rules", () =>
    Effect.gen(function* () {
      let sent = 3
      const { target } = yield* exporter(() => `# TYPE sent_total counter\nsent_total{channel="webhook"} ${sent}\n`)
      const directory = yield* ownDirectory
      const rules = join(directory, "rules.yml")
      const rule = { alert: "MuchWasSent", expr: "sent_total > 5", labels: { severity: "page" } }
      writeFileSync(rules, JSON.stringify({ groups: [{ name: "sent", rules: [rule] }] }))
      const scrape = { metrics_path: "/numbers", authorization: { credentials: "the-key" } }
      const server = yield* prometheus({ targets: [target], scrape, intervalMs: 200, ruleFiles: [rules] })
      yield* Effect.promise(async () => {
        await server.scraped()
        expect(await server.query("sum by (channel) (sent_total)")).toEqual([
          { labels: { channel: "webhook" }, value: 3 }
        ])
        expect(await server.query("sent_total > 5")).toEqual([])
        expect(await server.query("scalar(sent_total) + 1")).toEqual([{ labels: {}, value: 4 }])
        await expect(server.query("sum(")).rejects.toThrow("parse error")
        sent = 7
        await until("the alert fires", async () => {
          const { alerts } = await server.api<{ alerts: ReadonlyArray<{ state: string }> }>("alerts")
          return alerts.some(({ state }) => state === "firing")
        })
        expect(await server.query("sent_total")).toMatchObject([{ value: 7 }])
      })
    })
  )

  it.live("comes with promtool, which tells good metrics and rules from bad ones", () =>
    Effect.promise(async () => {
      const good = "# HELP sent_total Messages that were sent.\n# TYPE sent_total counter\nsent_total 3\n"
      expect(await promtool(["check", "metrics"], good)).toEqual({ code: 0, output: "" })
      expect(await promtool(["check", "metrics"], good.replace(/sent_total/g, "sent"))).toMatchObject({
        code: 3,
        output: expect.stringContaining('counter metrics should have "_total" suffix')
      })
      expect((await promtool(["check", "rules", "/nowhere.yml"])).code).not.toBe(0)
    })
  )
})
