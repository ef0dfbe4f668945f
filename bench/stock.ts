/**
 * (j) A fresh PostgreSQL of the distribution, as it comes: 12,000 messages that wait are delivered before anybody has analyzed
 * a table, and after. Plans that lean on statistics show here, in rounds so that a slow minute hits both.
 *
 * Its programs are the newest in /usr/lib/postgresql, or those of the directory that `BENCH_STOCK_POSTGRES` names. Autovacuum is
 * off, because it would analyze whenever its minute comes.
 */
import { existsSync, readdirSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { temporaryDirectory } from "../test/servers/leftovers.ts"
import { postgresHome, programsIn } from "../test/servers/ownPostgres.ts"
import { databasesOf } from "./databases.ts"
import { type Course, type Delivery, deliverPosthaste } from "./deliveries.ts"

export interface StockRound {
  readonly before: Delivery
  readonly after: Delivery
}

export interface Stock {
  readonly server: string
  readonly messages: number
  readonly rounds: ReadonlyArray<StockRound>
}

const messages = 12_000
const rounds = 3
const installed = "/usr/lib/postgresql"

const programsDirectory = (): string | null => {
  const given = process.env["BENCH_STOCK_POSTGRES"]
  if (given !== undefined) return given
  if (!existsSync(installed)) return null
  const [newest] = readdirSync(installed).toSorted((a, b) => Number(b) - Number(a))
  return newest === undefined ? null : join(installed, newest, "bin")
}

/** Null where no PostgreSQL is installed. */
export const measureStock = async (course: Course): Promise<Stock | null> => {
  const directory = programsDirectory()
  if (directory === null) return null
  const home = temporaryDirectory()
  try {
    const own = await postgresHome(home, programsIn(directory))
    const server = await own.server(await own.initialize("data"), { autovacuum: "off" })
    await server.start()
    try {
      const databases = await databasesOf(server.url)
      const here = { ...course, databases, count: messages, cpuProf: null }
      const measured: Array<StockRound> = []
      for (let n = 0; n < rounds; n++)
        measured.push({
          before: await deliverPosthaste(here, "worker", { isAnalyzed: false }),
          after: await deliverPosthaste(here, "worker")
        })
      return { server: databases.settings["server_version"] ?? "unknown", messages, rounds: measured }
    } finally {
      await server.stop("fast")
    }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}
