/**
 * An event may come to thousands of lanes at once. What one statement does for each of them must not grow with their number: the
 * server counts the rows that its plans handle, so nothing here depends on a clock.
 */
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { afterAll, describe, expect, it, onTestFinished } from "vitest"
import { sessionPlanning } from "../../../../src/adapters/postgres/planning.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const LANES = 1_000
const lanes = `array(select ('01910000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid from generate_series(1, ${LANES}) n)`
const due = (when: string) => `array_fill((${when})::timestamptz, array[${LANES}])`

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

interface Plan {
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Join Filter"?: number
  readonly Plans?: ReadonlyArray<Plan>
}

const handledBy = (plan: Plan): number =>
  (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0) + (plan["Rows Removed by Join Filter"] ?? 0)) *
    plan["Actual Loops"] +
  (plan.Plans ?? []).reduce((sum, inner) => sum + handledBy(inner), 0)

describe("a thousand lanes that are woken at once", () => {
  it.each(["unknown lanes", "lanes that sleep", "lanes that are awake"])(
    "are each found by their key: %s",
    async (which) => {
      const url = Redacted.value(await Effect.runPromise(Scope.provide(freshDatabase, scope)))
      const settings = { search_path: "posthaste", ...sessionPlanning }
      const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
      const client = new pg.Client({ connectionString: url, options: options.join(" ") })
      onTestFinished(() => client.end())
      await client.connect()
      const wake = (when: string) => client.query(`select wake_lanes(${lanes}, ${due(when)})`)
      if (which !== "unknown lanes")
        await wake(which === "lanes that sleep" ? "'infinity'" : "now() - interval '1 day'")
      await client.query("load 'auto_explain'")
      const plans: Array<Plan> = []
      client.on("notice", ({ message }) => {
        const at = message?.indexOf("{") ?? -1
        if (at >= 0) plans.push((JSON.parse(message!.slice(at)) as { Plan: Plan }).Plan)
      })
      const explaining = {
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_analyze": "on",
        "auto_explain.log_timing": "off",
        "auto_explain.log_nested_statements": "on",
        "auto_explain.log_format": "json",
        client_min_messages: "log"
      }
      for (const [name, value] of Object.entries(explaining)) await client.query(`set ${name} = '${value}'`)
      await wake("now()")
      await client.query("set auto_explain.log_min_duration = -1")
      expect(plans.length).toBeGreaterThan(0)
      expect(plans.reduce((sum, plan) => sum + handledBy(plan), 0) / LANES).toBeLessThan(30)
      const { rows } = await client.query<{ awake: string }>(
        "select count(*) as awake from lane where ready_at <= now()"
      )
      expect(Number(rows[0]!.awake)).toBe(LANES)
    }
  )
})
