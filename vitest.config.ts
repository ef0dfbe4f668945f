/**
 * Three kinds of tests: `unit` needs no server, `postgres` needs one (test/servers provides it), and
 * `simulation` needs time.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [
            "test/adapters/postgres/**",
            "test/adapters/embedded-postgres/**",
            "test/adapters/eventstoredb/**",
            "test/end-to-end/**",
            "test/simulation/**"
          ]
        }
      },
      {
        test: {
          name: "postgres",
          globalSetup: ["test/servers/postgres.ts"],
          include: [
            "test/adapters/postgres/**/*.test.ts",
            "test/adapters/embedded-postgres/**/*.test.ts",
            "test/adapters/eventstoredb/**/*.test.ts",
            "test/end-to-end/**/*.test.ts"
          ],
          testTimeout: 60_000,
          hookTimeout: 60_000
        }
      },
      {
        test: { name: "simulation", include: ["test/simulation/**/*.test.ts"], testTimeout: 180_000 }
      }
    ]
  }
})
