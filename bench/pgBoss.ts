/**
 * (c) pg-boss doing the same signed POSTs: four workers, each fetching batches of 500 without pausing while batches come
 * back full, each batch settled in one statement. The job's id is the `webhook-id` and its data the body.
 *
 * The queue has a table of its own, and the process neither supervises nor schedules. Two or eight workers, batches of
 * 250 or 1,000 and a shared table were tried: all within the noise.
 */
import { PgBoss } from "pg-boss"
import { monotonicNow } from "./monotonicNow.ts"
import { payloadOf } from "./payload.ts"
import { serve } from "./remote.ts"
import { makePoster, type Poster } from "./signedPost.ts"

const queue = "post"
const workers = 4
const batchSize = 500

const open = async (databaseUrl: string): Promise<PgBoss> => {
  const boss = new PgBoss({ connectionString: databaseUrl, max: workers + 2, supervise: false, schedule: false })
  boss.on("error", (error) => console.error("pg-boss:", error.message))
  await boss.start()
  return boss
}

let poster: Poster
let boss: PgBoss

const pgBoss = {
  /** Puts `count` jobs into the queue; answers with the ids the sink will see. */
  fill: async (options: {
    readonly databaseUrl: string
    readonly count: number
    readonly bytes: number
  }): Promise<ReadonlyArray<string>> => {
    boss = await open(options.databaseUrl)
    await boss.createQueue(queue, { partition: true })
    const ids: Array<string> = []
    for (let from = 0; from < options.count; from += 1000) {
      const inserted = await boss.insert(
        queue,
        Array.from({ length: Math.min(1000, options.count - from) }, (_, n) => ({
          data: JSON.parse(payloadOf(from + n, options.bytes)) as object
        })),
        { returnId: true }
      )
      ids.push(...(inserted ?? []))
    }
    await boss.stop()
    return ids
  },
  /** When this process had loaded all it needs. */
  ready: (): number => monotonicNow(),
  start: async (options: { readonly databaseUrl: string; readonly sinkUrl: string }): Promise<void> => {
    poster = makePoster(options.sinkUrl)
    boss = await open(options.databaseUrl)
    await boss.work(
      queue,
      { batchSize, localConcurrency: workers, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
      (jobs) => Promise.all(jobs.map((job) => poster.post(job.id, JSON.stringify(job.data))))
    )
  },
  stop: async (): Promise<void> => {
    await boss.stop()
    await poster.close()
  }
}

export type PgBossContestant = typeof pgBoss
serve(pgBoss)
