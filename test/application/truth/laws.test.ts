import { DateTime, Result } from "effect"
import { describe, expect, it } from "vitest"
import type { LoggedFact } from "../../../src/application/ports/EventStore.ts"
import { judgeJournal } from "../../../src/application/truth/laws.ts"

const id = "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"
const at = DateTime.makeUnsafe("2026-01-01T12:00:00.000Z")

const written = (stream: string, name: string, data = "{}"): LoggedFact => ({
  ...{ stream, messageId: null, version: 1, at, actor: null },
  ...{ name, data, position: "1:1" }
})

/** What the channels call the journals of their destinations. */
const destinations = ["endpoint", "http-target", "whatsapp-account"]

describe("a journal with a fact that no release wrote", () => {
  // Every kind of journal that Posthaste writes.
  for (const stream of [
    `circuit-${id}`,
    `replay-${id}`,
    `condition-broker-${id}`,
    "consent-acme:whatsapp:case 7",
    `blocked-${id}`,
    `endpoint-${id}`,
    `http-target-${id}`,
    `whatsapp-account-${id}`,
    `key-${id}`
  ]) {
    it(`breaks the law of ${stream.split(/-[0-9a-f]{8}|-acme/)[0]} streams`, () => {
      expect(judgeJournal(stream, [written(stream, "Nonsense@1")], destinations)).toMatchObject(
        Result.fail({ rule: "unreadable-fact", version: 1 })
      )
    })
  }
})

describe("a journal of a kind that is not known here", () => {
  it("is judged by its versions alone", () => {
    const stream = `later-${id}`
    expect(Result.isSuccess(judgeJournal(stream, [written(stream, "Nonsense@1")], destinations))).toBe(true)
    expect(judgeJournal(stream, [{ ...written(stream, "Nonsense@1"), version: 2 }], destinations)).toMatchObject(
      Result.fail({ rule: "missing-version", version: 1 })
    )
  })
})
