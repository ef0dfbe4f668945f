/** What is installed is what was looked at: each version is exact, each package is known by its hash. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import manifest from "../package.json" with { type: "json" }

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: string | ReadonlyArray<string>
  readonly cpu?: string | ReadonlyArray<string>
  readonly hasInstallScript?: boolean
}

const lock = JSON.parse(readFileSync(join(import.meta.dirname, "../package-lock.json"), "utf8")) as {
  readonly packages: Record<string, Locked>
}
const locked = Object.entries(lock.packages).filter(([path, { link }]) => path.includes("node_modules/") && !link)
const lookedAt: Readonly<Record<string, string>> = { bun: "1.4.4" }

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

  it("run no script at the install but those that were looked at, in the version that was looked at", () => {
    const withScript = locked.filter(([, { hasInstallScript }]) => hasInstallScript)
    const allowed: Readonly<Record<string, boolean>> = manifest.allowScripts
    expect(Object.keys(allowed).toSorted()).toEqual(withScript.map(([path]) => nameOf(path)).toSorted())
    // npm does not match versions of packages whose origin is not in the lockfile, so they stand here: read the script, then
    // write down its new version.
    const run = withScript.filter(([path]) => allowed[nameOf(path)])
    expect(Object.fromEntries(run.map(([path, { version }]) => [nameOf(path), version]))).toEqual(lookedAt)
    // What users install runs none.
    expect(run.filter(([, { dev }]) => !dev)).toEqual([])
  })

  it("bring Node as packages like any other, one for each kind of machine", () => {
    const found = Object.entries(manifest.optionalDependencies).map(([name, version]) => {
      const { os, cpu, optional, integrity, ...rest } = lock.packages[`node_modules/${name}`]!
      expect(rest, name).toMatchObject({ version })
      expect([optional, integrity, rest.hasInstallScript], name).toEqual([
        true,
        expect.stringMatching(/^sha512-/),
        undefined
      ])
      // bin/posthaste asks for 24.2.
      expect(version).toMatch(/^24\.(?![01]\.)\d+\.\d+$/)
      return [os, cpu].flat().join("-")
    })
    expect(found).toEqual(["darwin-x64", "linux-arm64", "linux-x64"])
  })
})
