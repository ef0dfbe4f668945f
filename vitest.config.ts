/**
 * Three kinds of tests: `unit` needs no server, `postgres` needs real ones (test/servers provides them), and
 * `simulation` needs time. All run at once, on the same workers: while one test waits for what it started, another uses
 * the cores. So no test may need a quiet machine.
 */
import { statfsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { LongestFirst } from "./test/longestFirst.ts"

/** One more than there are cores, for tests wait. All projects have the same number: else they would run one after another. */
const maxWorkers = availableParallelism() + 1

/**
 * What tests write, above all a database each, goes to memory where there is enough of it: on a disk, hundreds of copies
 * of the template's six hundred files took more time than the tests.
 */
const memory = "/dev/shm"
const isRoomy = (directory: string): boolean => {
  try {
    const { type, bsize, bavail } = statfsSync(directory)
    return type === TMPFS && bsize * bavail > 4 * 2 ** 30
  } catch {
    return false
  }
}
const TMPFS = 0x01021994
if (isRoomy(memory)) process.env["TMPDIR"] = memory

const needServers = [
  "test/adapters/postgres/**/*.test.ts",
  "test/adapters/embedded-postgres/**/*.test.ts",
  "test/adapters/eventstoredb/**/*.test.ts",
  "test/adapters/channels/amqp/**/*.test.ts",
  "test/end-to-end/**/*.test.ts",
  "test/examples/**/*.test.ts",
  "test/sdk/server/**/*.test.ts",
  "test/servers/**/*.test.ts"
]
const needTime = ["test/simulation/**/*.test.ts"]

export default defineConfig({
  test: {
    maxWorkers,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "unit",
          maxWorkers,
          // Files share one world of modules: loading it anew for each took longer than all tests together.
          isolate: false,
          // Some laws are tried a thousand times, and the machine may have other things to do.
          testTimeout: 120_000,
          include: ["test/**/*.test.ts"],
          setupFiles: ["test/propertySeed.ts"],
          exclude: [...needServers, ...needTime]
        }
      },
      {
        test: {
          name: "postgres",
          maxWorkers,
          globalSetup: ["test/servers/postgresServers.ts"],
          include: needServers,
          testTimeout: 360_000,
          expect: { poll: { timeout: 120_000 } },
          // The first may install a server, over a slow network.
          hookTimeout: 600_000
        }
      },
      { test: { name: "simulation", maxWorkers, include: needTime, testTimeout: 600_000 } }
    ]
  }
})
