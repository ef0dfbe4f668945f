/** The sample of a first start, where its files in the data directory were emptied or cut. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect } from "vitest"
import { ApiKeys } from "../../src/application/ports/ApiKeys.ts"
import { Destinations } from "../../src/application/ports/Destinations.ts"
import { DestinationId } from "../../src/domain/ids.ts"
import { firstOrg, firstOrgKey, type Sample, sampleEndpoint } from "../../src/setup/sample.ts"
import * as MemoryPorts from "../model/MemoryPorts.ts"

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "posthaste-"))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const at = (name: string) => join(home, name)

describe("the key of the first org", () => {
  it.effect("is the same at every start, and none once it was revoked", () =>
    Effect.gen(function* () {
      const key = yield* firstOrgKey(home)
      expect(key).toBe(readFileSync(at("default-org-key"), "utf8").trim())
      expect(yield* firstOrgKey(home)).toBe(key)
      const keys = yield* ApiKeys
      for (const { id } of yield* keys.list(firstOrg)) yield* keys.revoke(id, firstOrg)
      expect(yield* firstOrgKey(home)).toBe(null)
    }).pipe(Effect.provide(MemoryPorts.layer))
  )

  it.effect("is not taken for a revoked one where its file is empty or cut", () =>
    Effect.gen(function* () {
      const key = yield* firstOrgKey(home)
      for (const [text, problem] of [
        ["", "is empty"],
        [key!.slice(0, 30), "was cut off"]
      ] as const) {
        writeFileSync(at("default-org-key"), text)
        expect(yield* Effect.flip(firstOrgKey(home))).toMatchObject({
          message: `${at("default-org-key")} ${problem}: bring it back from a backup, or delete it and the next start makes another`
        })
      }
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})

describe("the sample endpoint", () => {
  const sample = (): Sample => ({
    dataDir: home,
    address: "127.0.0.1",
    port: 9,
    url: "http://127.0.0.1:9/path",
    trust: () => {}
  })

  it.effect("is made once, and again where its file names none", () =>
    Effect.gen(function* () {
      const id = yield* sampleEndpoint(sample())
      expect(yield* sampleEndpoint(sample())).toBe(id)
      for (const text of ["", id.slice(0, 20), "no id"]) {
        writeFileSync(at("sample-endpoint-id"), text)
        const made = yield* sampleEndpoint(sample())
        expect((yield* (yield* Destinations).forSending(firstOrg, DestinationId.make(made)))?.destination.id).toBe(made)
        expect(readFileSync(at("sample-endpoint-id"), "utf8").trim()).toBe(made)
      }
    }).pipe(Effect.provide(MemoryPorts.layer))
  )
})
