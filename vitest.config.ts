/**
 * Three kinds of tests: `unit` needs no server, `postgres` needs one (test/servers provides it), and
 * `simulation` needs time.
 */
import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

/** Vitest leaves a core free; on a small machine that was half of it. */
const maxWorkers = Math.max(2, availableParallelism())

export default defineConfig({
  test: {
    maxWorkers,
    projects: [
      {
        test: {
          name: "unit",
          maxWorkers,
          // Files share one world of modules: loading it anew for each took longer than all tests together.
          isolate: false,
          // Some laws are tried a thousand times, on machines that do other things too.
          testTimeout: 30_000,
          include: ["test/**/*.test.ts"],
          exclude: [
            "test/adapters/postgres/**",
            "test/adapters/embedded-postgres/**",
            "test/adapters/eventstoredb/**",
            "test/end-to-end/**",
            "test/servers/**",
            "test/simulation/**"
          ]
        }
      },
      {
        test: {
          name: "postgres",
          // One file at a time: they measure what they wait for, and share a server whose log shows nothing new as long
          // as a transaction of anybody's runs.
          maxWorkers: 1,
          globalSetup: ["test/servers/postgres.ts"],
          include: [
            "test/adapters/postgres/**/*.test.ts",
            "test/adapters/embedded-postgres/**/*.test.ts",
            "test/adapters/eventstoredb/**/*.test.ts",
            "test/end-to-end/**/*.test.ts",
            "test/servers/**/*.test.ts"
          ],
          testTimeout: 60_000,
          hookTimeout: 60_000
        }
      },
      {
        test: { name: "simulation", maxWorkers, include: ["test/simulation/**/*.test.ts"], testTimeout: 180_000 }
      }
    ]
  }
})
