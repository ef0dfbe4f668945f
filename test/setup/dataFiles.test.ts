/** Values that a start keeps in its data directory: whole, on the disk, nobody else's to read, and never made anew where one was. */
import fs, { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect } from "vitest"
import { dataFile, readOrCreate } from "../../src/setup/dataFiles.ts"

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "posthaste-"))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** What is asked of the file system meanwhile, in order. */
const watched = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const calls: Array<string> = []
    const paths = new Map<number, string>()
    const { openSync, writeSync, fsyncSync, renameSync, linkSync } = fs
    const real = { openSync, writeSync, fsyncSync, renameSync, linkSync }
    const nameOf = (path: unknown) =>
      String(path) === home ? "directory" : String(path).endsWith("/key") ? "key" : "aside"
    Object.assign(fs, {
      openSync: (path: string, ...more: [never]) => {
        const file = real.openSync(path, ...more)
        paths.set(file, nameOf(path))
        return file
      },
      writeSync: (file: number, text: string) => {
        calls.push(`write ${paths.get(file)}`)
        return real.writeSync(file, text)
      },
      fsyncSync: (file: number) => {
        calls.push(`sync ${paths.get(file)}`)
        real.fsyncSync(file)
      },
      renameSync: (from: string, to: string) => {
        calls.push(`${nameOf(from)} becomes ${nameOf(to)}`)
        real.renameSync(from, to)
      },
      linkSync: (from: string, to: string) => {
        calls.push(`${nameOf(from)} becomes ${nameOf(to)}`)
        real.linkSync(from, to)
      }
    })
    syncBuiltinESMExports()
    yield* Effect.ensuring(
      effect,
      Effect.sync(() => {
        Object.assign(fs, real)
        syncBuiltinESMExports()
      })
    )
    return calls
  })

const valueIn = (path: string) => readFileSync(path, "utf8").trim()

describe("a value in the data directory", () => {
  for (const how of ["write", "create"] as const) {
    it.effect(`is on the disk, whole, before it has its name, and so is the name (${how})`, () =>
      Effect.gen(function* () {
        expect(yield* watched(dataFile(home, "key")[how]("secret"))).toEqual([
          "write aside",
          "sync aside",
          "aside becomes key",
          "sync directory"
        ])
        expect(valueIn(join(home, "key"))).toBe("secret")
        expect(statSync(join(home, "key")).mode & 0o777).toBe(0o600)
        expect(readdirSync(home)).toEqual(["key"])
      })
    )
  }

  it.effect("is left by a start that comes second, and by what a start left half done", () =>
    Effect.gen(function* () {
      const { create, read } = dataFile(home, "key")
      writeFileSync(join(home, `key.${process.pid}`), "half")
      yield* create("first")
      yield* create("second")
      expect(yield* read).toBe("first")
      expect(readdirSync(home)).toEqual(["key"])
    })
  )

  it.effect("is made where there is none, and never where it is empty or wrong", () =>
    Effect.gen(function* () {
      const file = dataFile(home, "key")
      const kept = readOrCreate(
        file,
        () => "made",
        (value) => (value === "made" ? null : "is wrong")
      )
      expect([yield* kept, yield* kept]).toEqual(["made", "made"])
      for (const [text, problem] of [
        ["", "is empty"],
        [" \n", "is empty"],
        ["other", "is wrong"]
      ] as const) {
        writeFileSync(file.path, text)
        expect((yield* Effect.flip(kept)).message).toBe(`${file.path} ${problem}: bring it back from a backup`)
        expect(readFileSync(file.path, "utf8")).toBe(text)
      }
    })
  )

  it.effect("that can't be written says why, and is not there in part", () =>
    Effect.gen(function* () {
      mkdirSync(join(home, "key"))
      const { message } = yield* Effect.flip(dataFile(home, "key").write("secret"))
      expect(message).toMatch(/EISDIR|ENOTEMPTY|EEXIST/)
      expect(statSync(join(home, "key")).isDirectory()).toBe(true)
    })
  )
})
