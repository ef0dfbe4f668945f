/**
 * A real Prometheus of a test's own, on a port and with data of its own: the one that is installed, or Debian's. The
 * same package brings `promtool`, which checks rules and what is scraped.
 */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { installed } from "./installed.ts"
import { lastingPort } from "./lastingPort.ts"
import { noteProcess, ownDirectory } from "./leftovers.ts"
import { pause, until } from "./until.ts"

export interface Options {
  /** Whom to scrape, as `host:port`. */
  readonly targets: ReadonlyArray<string>
  /** What else stands in the scrape configuration, such as `metrics_path` and `authorization`. */
  readonly scrape?: Readonly<Record<string, unknown>>
  readonly intervalMs?: number
  /** Files with rules that are evaluated as often as targets are scraped. */
  readonly ruleFiles?: ReadonlyArray<string>
}

/** One series of an answer, and its newest value. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Prometheus {
  readonly url: string
  /** Asks for `/api/v1/<path>` and answers its `data`; fails with Prometheus' own words. */
  readonly api: <A>(path: string, parameters?: Readonly<Record<string, string>>) => Promise<A>
  /** The value of an expression, now, in all its series. */
  readonly query: (expression: string) => Promise<ReadonlyArray<Series>>
  /** Waits until every target was scraped well after this was asked. */
  readonly scraped: () => Promise<void>
}

interface Target {
  readonly health: string
  readonly lastScrape: string
}

/** Runs `promtool` with these arguments and this input to its end, whatever it says. */
export const promtool = async (args: ReadonlyArray<string>, input = "") => {
  const program = await installed("promtool")
  return await new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
    const child = execFile(program, args, (error, out, problems) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: out + problems })
    )
    child.stdin!.end(input)
  })
}

/** Runs one for as long as the scope is open. */
export const prometheus = Effect.fnUntraced(function* (options: Options) {
  const program = yield* Effect.promise(() => installed("prometheus"))
  const directory = yield* ownDirectory
  return yield* Effect.acquireRelease(
    Effect.promise(async () => {
      for (let starts = 1; ; starts++) {
        const server = await start(program, directory, options)
        if (await server.isReady) return server
        // Somebody else may have taken its port in between: the next one has another.
        if (starts === 3) throw new Error(`Prometheus did not start:\n${server.log()}`)
      }
    }),
    ({ end }) => Effect.promise(end)
  )
})

const start = async (program: string, directory: string, options: Options) => {
  const port = await lastingPort()
  const data = join(directory, String(port))
  mkdirSync(data)
  const logFile = join(data, "log")
  const configuration = join(data, "prometheus.yml")
  writeFileSync(configuration, JSON.stringify(configurationOf(options)))
  const output = openSync(logFile, "a")
  const listen = `--web.listen-address=127.0.0.1:${port}`
  const child = spawn(
    program,
    [`--config.file=${configuration}`, `--storage.tsdb.path=${join(data, "series")}`, listen, "--log.level=warn"],
    { cwd: directory, detached: true, stdio: ["ignore", output, output] }
  )
  closeSync(output)
  const ended = once(child, "exit")
  if (child.pid !== undefined) noteProcess(directory, child.pid)

  const url = `http://127.0.0.1:${port}`
  const api = async <A>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<A> => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const answer = (await response.json()) as { status: string; error?: string; data: A }
    if (answer.status !== "success") throw new Error(`Prometheus refuses ${path}: ${answer.error}`)
    return answer.data
  }
  const becomesReady = async () => {
    while (child.exitCode === null) {
      const ready = await fetch(`${url}/-/ready`).catch(() => null)
      if (ready?.ok) return true
      await pause(50)
    }
    return false
  }
  return {
    url,
    api,
    query: async (expression: string) => {
      const { resultType, result } = await api<{
        resultType: string
        result: ReadonlyArray<{ metric: Record<string, string>; value: [number, string] }> & [number, string]
      }>("query", { query: expression })
      if (resultType === "scalar") return [{ labels: {}, value: Number(result[1]) }]
      return result.map(({ metric, value }): Series => ({ labels: metric, value: Number(value[1]) }))
    },
    scraped: async () => {
      const since = Date.now()
      await until("every target is scraped", async () => {
        const { activeTargets } = await api<{ activeTargets: ReadonlyArray<Target> }>("targets", { state: "active" })
        return (
          activeTargets.length === options.targets.length &&
          activeTargets.every(({ health, lastScrape }) => health === "up" && Date.parse(lastScrape) > since)
        )
      })
    },
    log: () => readFileSync(logFile, "utf8"),
    isReady: becomesReady(),
    end: async () => {
      child.kill("SIGKILL")
      await ended
    }
  } satisfies Prometheus & Record<string, unknown>
}

/** As JSON, which is YAML too. */
const configurationOf = ({ targets, scrape = {}, intervalMs = 500, ruleFiles = [] }: Options) => {
  const interval = `${intervalMs}ms`
  return {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: ruleFiles,
    scrape_configs: [{ job_name: "posthaste", ...scrape, static_configs: [{ targets }] }]
  }
}
