/**
 * (c) graphile-worker doing the same signed POSTs. The job's id is the `webhook-id` and its payload the body, so a job
 * carries nothing extra.
 *
 * - `default`: 64 jobs at a time, as many as everybody may have in flight, and the pool its documentation asks for at
 *   that concurrency (`concurrentJobs + 2`); all else as it comes.
 * - `tuned`: what its performance page recommends for throughput: jobs fetched 500 at a time into the local queue and
 *   completions and failures batched (`0`: everything that settles in the same turn goes into one statement). A pool of
 *   10, a batch delay of 10 ms, a local queue of 2,000 and 24 or 128 concurrent jobs were tried: all within the noise.
 *
 * Both run without its log lines (two per job by default) and with prepared statements.
 */
import { Logger, makeWorkerUtils, type Runner, run, runMigrations } from "graphile-worker"
import { monotonicNow } from "./monotonicNow.ts"
import { payloadOf } from "./payload.ts"
import { serve } from "./remote.ts"
import { connections, makePoster, type Poster } from "./signedPost.ts"

const logger = new Logger(() => () => {})

const presets = {
  default: { concurrentJobs: connections, maxPoolSize: connections + 2 },
  tuned: {
    concurrentJobs: connections,
    maxPoolSize: connections + 2,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0
  }
} satisfies Record<string, GraphileConfig.WorkerOptions>

export type GraphileSetting = keyof typeof presets

let poster: Poster
let runner: Runner

const graphile = {
  /** Puts `count` jobs into the queue; answers with the ids the sink will see. */
  fill: async (options: {
    readonly databaseUrl: string
    readonly count: number
    readonly bytes: number
  }): Promise<ReadonlyArray<string>> => {
    await runMigrations({ connectionString: options.databaseUrl, logger })
    const utils = await makeWorkerUtils({ connectionString: options.databaseUrl, logger })
    const ids: Array<string> = []
    for (let from = 0; from < options.count; from += 1000) {
      const jobs = await utils.addJobs(
        Array.from({ length: Math.min(1000, options.count - from) }, (_, n) => ({
          identifier: "post",
          payload: JSON.parse(payloadOf(from + n, options.bytes))
        }))
      )
      ids.push(...jobs.map((job) => `job-${job.id}`))
    }
    await utils.release()
    return ids
  },
  /** When this process had loaded all it needs. */
  ready: (): number => monotonicNow(),
  start: async (options: {
    readonly databaseUrl: string
    readonly sinkUrl: string
    readonly setting: GraphileSetting
  }): Promise<void> => {
    poster = makePoster(options.sinkUrl)
    runner = await run({
      preset: { worker: { connectionString: options.databaseUrl, logger, ...presets[options.setting] } },
      taskList: { post: (payload, helpers) => poster.post(`job-${helpers.job.id}`, JSON.stringify(payload)) },
      crontab: "",
      noHandleSignals: true
    })
  },
  stop: async (): Promise<void> => {
    await runner.stop()
    await poster.close()
  }
}

export type Graphile = typeof graphile
serve(graphile)
