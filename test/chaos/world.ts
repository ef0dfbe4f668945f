/**
 * What a campaign does its harm to: a PostgreSQL server, whose data may lie on a small disk of its own, and processes of
 * Posthaste under a supervisor, each with a proxy of its own to the database and a clock of its own.
 */
import { execFileSync } from "node:child_process"
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { lastingPort } from "../servers/lastingPort.ts"
import { type OwnPostgres, ownPrograms, postgresHome, programsIn } from "../servers/ownPostgres.ts"
import { operatorKey, type Product, startProduct } from "../servers/product.ts"
import { proxyTo, type Proxy as SilentProxy } from "../servers/proxy.ts"
import { pause } from "../servers/until.ts"
import type { Fault } from "./plan.ts"

const DISK_BYTES = 768 * 2 ** 20
const STARTED_AGAIN_AFTER_MS = 500

export interface Supervised {
  readonly name: string
  readonly url: string | null
  readonly proxy: SilentProxy
  readonly clockFile: string
  /** Everything it printed, over all its starts. */
  readonly printed: () => string
  /** Why it ended although nobody ended it. */
  readonly ends: ReadonlyArray<string>
  /** From here on the supervisor starts it, as often as that takes, until it is ready. */
  readonly up: () => Promise<void>
  readonly down: (how: "kill" | "stop") => Promise<void>
  readonly signal: (name: "SIGSTOP" | "SIGCONT") => void
}

export interface World {
  readonly databaseUrl: string
  readonly database: OwnPostgres
  readonly processes: ReadonlyArray<Supervised>
  readonly operatorKey: string
  /** Why there is no disk that can be filled; null where there is one. */
  readonly noDisk: string | null
  /** Does it, and answers when it is over. */
  readonly strike: (fault: Fault) => Promise<void>
  readonly close: () => Promise<void>
}

export interface Setting {
  /** Empty, and removed by whoever made it. */
  readonly home: string
  /** Roles of each process. */
  readonly roles: ReadonlyArray<string>
  /** Where the programs of PostgreSQL are; those that come with Posthaste when it is null. */
  readonly programs: string | null
  readonly smallDisk: boolean
  /** Shorter than by default: a campaign waits for it often. */
  readonly leaseMs: number
}

export const makeWorld = async ({ home, roles, programs, smallDisk, leaseMs }: Setting): Promise<World> => {
  const scope = Scope.makeUnsafe()
  const disk = join(home, "disk")
  const noDisk = smallDisk ? mounted(disk) : "it was not asked for"
  const servers = await postgresHome(
    noDisk === null ? disk : home,
    programs === null ? await ownPrograms() : programsIn(programs)
  )
  const database = await servers.server(await servers.initialize("data"), {
    max_connections: "150",
    shared_buffers: "64MB",
    max_wal_size: "128MB",
    min_wal_size: "32MB",
    // Asynchronous commits wait long for the disk, so that a crash has many of them to lose.
    wal_writer_delay: "10s",
    wal_writer_flush_after: "64MB",
    log_min_messages: "fatal"
  })
  await database.start()

  const processes = await Promise.all(
    roles.map(async (of, nth) => {
      const proxy = await Effect.runPromise(Scope.provide(proxyTo({ host: "127.0.0.1", port: database.port }), scope))
      return supervised("abcdefgh"[nth]!, of, proxy, home, leaseMs)
    })
  )
  // The first one makes the tables.
  await processes[0]!.up()
  await Promise.all(processes.map((each) => each.up()))

  const ballast = join(disk, "ballast")
  const strikes: { readonly [T in Fault["type"]]: (fault: Fault & { readonly type: T }) => Promise<void> } = {
    kill: async ({ process, lastsMs }) => {
      await processes[process]!.down("kill")
      await pause(lastsMs)
      void processes[process]!.up()
    },
    restart: async ({ process, lastsMs }) => {
      await processes[process]!.down("stop")
      await pause(lastsMs)
      void processes[process]!.up()
    },
    freeze: async ({ process, lastsMs }) => {
      processes[process]!.signal("SIGSTOP")
      await pause(lastsMs)
      processes[process]!.signal("SIGCONT")
    },
    silence: async ({ process, lastsMs, alsoNew }) => {
      processes[process]!.proxy.fallSilent(alsoNew)
      await pause(lastsMs)
      processes[process]!.proxy.heal()
    },
    wrongClock: async ({ process, lastsMs, byMs }) => {
      writeFileSync(processes[process]!.clockFile, String(byMs))
      await pause(lastsMs)
      writeFileSync(processes[process]!.clockFile, "0")
    },
    crashDatabase: async ({ lastsMs }) => {
      await database.stop("immediate")
      await pause(lastsMs)
      await database.start()
    },
    freezeDatabase: async ({ lastsMs }) => {
      database.freeze()
      await pause(lastsMs)
      database.thaw()
    },
    fillDisk: async ({ lastsMs }) => {
      fill(ballast)
      await pause(lastsMs)
      rmSync(ballast, { force: true })
      // A server that could not write its log has ended.
      if (database.isRunning()) return
      await database.stop("immediate")
      await database.start()
    }
  }

  return {
    databaseUrl: database.url,
    database,
    processes,
    operatorKey,
    noDisk,
    strike: (fault) => (strikes[fault.type] as (fault: Fault) => Promise<void>)(fault),
    close: async () => {
      await Promise.all(processes.map((each) => each.down("kill")))
      database.thaw()
      await database.stop("immediate")
      await Effect.runPromise(Scope.close(scope, Exit.void))
      if (noDisk === null) execFileSync("umount", [disk])
    }
  }
}

/** Why not; null when there is now a small disk at `directory`. */
const mounted = (directory: string): string | null => {
  mkdirSync(directory)
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", directory], { stdio: "pipe" })
    return null
  } catch (error) {
    return (error as Error).message.trim().split("\n").at(-1)!
  }
}

/** Leaves not a byte. */
const fill = (ballast: string): void => {
  const file = openSync(ballast, "w")
  for (let block = Buffer.alloc(2 ** 22); ; ) {
    try {
      writeSync(file, block)
    } catch {
      if (block.length === 1) break
      block = block.subarray(0, Math.max(1, block.length >> 4))
    }
  }
  closeSync(file)
}

const supervised = async (
  name: string,
  roles: string,
  proxy: SilentProxy,
  home: string,
  leaseMs: number
): Promise<Supervised> => {
  const port = roles.includes("api") ? await lastingPort() : null
  const clockFile = join(home, `clock-${name}`)
  writeFileSync(clockFile, "0")
  const ends: Array<string> = []
  let printed = ""
  let wanted = false
  let product: Product | null = null

  const settings: Record<string, string> = {
    POSTHASTE_ROLES: roles,
    POSTHASTE_LEASE_MS: String(leaseMs),
    POSTHASTE_CIRCUIT_OPEN_MS: "1000",
    POSTHASTE_CONCURRENCY: "128",
    POSTHASTE_LOG_FORMAT: "text",
    NODE_OPTIONS: `--import=${join(import.meta.dirname, "../servers/wrongClock.mjs")}`,
    WRONG_CLOCK_FILE: clockFile,
    ...(port === null ? {} : { PORT: String(port) })
  }

  const start = async (): Promise<Product | null> => {
    try {
      return await startProduct(`postgres://posthaste@127.0.0.1:${proxy.port}/postgres`, settings)
    } catch (error) {
      // What it said is at its end: the database was away, perhaps.
      printed += `${(error as Error).message}\n`
      return null
    }
  }

  const up = async () => {
    wanted = true
    while (wanted && product === null) {
      const started = await start()
      if (started === null) {
        await pause(STARTED_AGAIN_AFTER_MS)
        continue
      }
      product = started
      started.process.once("exit", (code, signal) => {
        printed += started.printed()
        if (product !== started) return
        product = null
        ends.push(`${name} ended by itself (${signal ?? code}): ${started.printed().trim().split("\n").at(-1)}`)
        if (wanted) void up()
      })
      if (!wanted) await down("kill")
    }
  }

  const down = async (how: "kill" | "stop") => {
    wanted = false
    const ending = product
    product = null
    if (ending === null) return
    // A frozen process hears nothing but this.
    ending.process.kill("SIGCONT")
    await (how === "kill" ? ending.kill() : ending.stop())
  }

  return {
    name,
    url: port === null ? null : `http://127.0.0.1:${port}`,
    proxy,
    clockFile,
    printed: () => printed + (product?.printed() ?? ""),
    ends,
    up,
    down,
    signal: (signal) => void product?.process.kill(signal)
  }
}
