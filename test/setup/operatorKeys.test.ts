import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { describe } from "vitest"
import { keptUpToDate } from "../../src/setup/operatorKeys.ts"

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
      const keys = yield* keptUpToDate([Redacted.make(old)], file)
      const become = (text: string, expected: ReadonlyArray<string>) =>
        Effect.promise(() => {
          writeFileSync(file, text)
          return expect.poll(() => keys().map(Redacted.value), { timeout: 60_000 }).toEqual(expected)
        })
      yield* become(`${old}\n${young}\n`, [old, young])
      yield* become("", [old, young])
      yield* become(`short ${young}`, [old, young])
      yield* become(`${young}\n`, [young])
    })
  )
})
