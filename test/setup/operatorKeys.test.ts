import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Logger, Redacted } from "effect"
import { describe } from "vitest"
import { keptUpToDate } from "../../src/setup/databaseAndKeys.ts"

const [old, young] = ["an-operator-key-of-old", "an-operator-key-of-now"]

const temporaryFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "posthaste-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
  ),
  (directory) => join(directory, "operator-keys")
)

describe("the operator's keys of a file", () => {
  it.live("are read again when the file changes, and stay when it holds none", () =>
    Effect.gen(function* () {
      const file = yield* temporaryFile
      writeFileSync(file, `${old}\n`)
      let complaints = 0
      const log = Logger.layer([
        Logger.make(({ message }) => {
          if (String(message).includes("holds none that could be read")) complaints += 1
        })
      ])
      const keys = yield* keptUpToDate([Redacted.make(old)], file).pipe(Effect.provide(log))
      /** Looked at and left: what stays as it was would be seen before it was looked at. */
      const isRefused = (text: string) =>
        Effect.promise(() => {
          const before = complaints
          writeFileSync(file, text)
          return expect.poll(() => complaints, { timeout: 60_000 }).toBe(before + 1)
        })
      const become = (text: string, expected: ReadonlyArray<string>) =>
        Effect.promise(() => {
          writeFileSync(file, text)
          return expect.poll(() => keys().map(Redacted.value), { timeout: 60_000 }).toEqual(expected)
        })
      yield* become(`${old}\n${young}\n`, [old, young])
      yield* isRefused("")
      yield* isRefused(`short ${young}`)
      expect(keys().map(Redacted.value)).toEqual([old, young])
      yield* become(`${young}\n`, [young])
    })
  )
})
