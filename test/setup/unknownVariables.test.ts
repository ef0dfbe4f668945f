import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { unknownVariables } from "../../src/setup/unknownVariables.ts"

describe("a variable that is no setting", () => {
  it.each([
    ["POSTHASTE_OPERATER_KEY", "did you mean POSTHASTE_OPERATOR_KEY?"],
    ["posthaste_roles", "did you mean POSTHASTE_ROLES?"],
    ["POSTHASTE_RETENTION_DAY", "did you mean POSTHASTE_RETENTION_DAYS?"],
    ["POSTHASTE_DATABASE_URL", "did you mean DATABASE_URL?"],
    ["POSTHASTE_PORT", "did you mean PORT?"],
    ["POSTHASTE_CONCURENCY", "did you mean POSTHASTE_CONCURRENCY?"],
    ["POSTHASTE_SOMETHING_QUITE_DIFFERENT", "docs/configuration.md lists those there are"]
  ])("is named: %s", (name, hint) => {
    expect(unknownVariables(["PATH", name, "POSTHASTE_URL"])).toEqual([
      `${name} is not a setting and has no effect: ${hint}`
    ])
  })

  it("is none of those that the documentation lists and the settings read", () => {
    const read = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8")
    const names = new Set(
      `${read("docs/configuration.md")}${read("src/setup/config.ts")}`.match(/\bPOSTHASTE_[A-Z_]*[A-Z]\b/g)
    )
    expect(names.size).toBeGreaterThan(15)
    expect(unknownVariables([...names])).toEqual([])
  })

  it("is none of those that Kubernetes sets for a Service of our name", () => {
    const linked = [
      "POSTHASTE_SERVICE_HOST",
      "POSTHASTE_SERVICE_PORT_HTTP",
      "POSTHASTE_PORT",
      "POSTHASTE_PORT_80_TCP_ADDR"
    ]
    expect(unknownVariables(linked)).toEqual([])
  })
})
