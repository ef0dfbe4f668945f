import { mkdirSync, readlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { linkLibraries } from "../../../src/adapters/embedded-postgres/cluster.ts"
import { temporaryDirectory } from "../../servers/leftovers.ts"

describe("the libraries of the server that comes with Posthaste", () => {
  it("are linked where no script of their package did it, and left as they are where one did", () => {
    const home = temporaryDirectory()
    mkdirSync(join(home, "native/lib"), { recursive: true })
    const links = ["libpq.so", "libpq.so.5"].map((name) => ({
      source: "native/lib/libpq.so.5.18",
      target: `native/lib/${name}`
    }))
    // A platform may need none.
    linkLibraries(home)
    writeFileSync(join(home, "native/pg-symlinks.json"), JSON.stringify(links.slice(0, 1)))
    linkLibraries(home)
    writeFileSync(join(home, "native/pg-symlinks.json"), JSON.stringify(links))
    linkLibraries(home)
    expect(links.map(({ target }) => readlinkSync(join(home, target)))).toEqual(["libpq.so.5.18", "libpq.so.5.18"])
  })
})
