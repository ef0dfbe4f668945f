import { DateTime, Result } from "effect"
import { describe, expect, it } from "vitest"
import type { LoggedFact } from "../../../src/application/ports/EventStore.ts"
import { judgeJournal } from "../../../src/application/store/laws.ts"

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
    `overdue-${id}`,
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

describe("a journal whose front was forgotten", () => {
  const judged = (kind: string, facts: ReadonlyArray<readonly [version: number, name: string, data?: string]>) => {
    const stream = `${kind}-${id}`
    return judgeJournal(
      stream,
      facts.map(([version, name, data = '{"reason":null,"orgId":"acme"}']) => ({
        ...written(stream, name, data),
        version
      })),
      destinations
    )
  }

  it("begins with a fact after which it rests, and goes on from there", () => {
    for (const facts of [
      [
        [4, "CircuitReset@1"],
        [5, "CircuitHeld@1"],
        [6, "CircuitReset@1"]
      ],
      [
        [4, "CircuitClosed@1"],
        [5, "CircuitHeld@1"]
      ]
    ] as const) {
      expect(Result.isSuccess(judged("circuit", facts))).toBe(true)
    }
    expect(Result.isSuccess(judged("overdue", [[2, "OverdueEnded@1"]]))).toBe(true)
    expect(Result.isSuccess(judged("outage", [[8, "BrokerBack@1"]]))).toBe(true)
  })

  it("breaks the law where it begins with any other, has a gap, or goes on as if it did not rest", () => {
    const breaks = (facts: Parameters<typeof judged>[1], breach: object) =>
      expect(judged("circuit", facts)).toMatchObject(Result.fail(breach))
    breaks([[4, "CircuitHeld@1"]], { rule: "missing-version", version: 1 })
    breaks(
      [
        [4, "CircuitReset@1"],
        [6, "CircuitHeld@1"]
      ],
      { rule: "missing-version", version: 5 }
    )
    breaks(
      [
        [4, "CircuitReset@1"],
        [5, "CircuitReset@1"]
      ],
      { rule: "illegal-fact", version: 5 }
    )
    breaks([[4, "CircuitReset@1", "{}"]], { rule: "unreadable-fact", version: 4 })
    // Nothing was before it.
    breaks([[1, "CircuitReset@1"]], { rule: "illegal-fact", version: 1 })
    expect(judged("key", [[4, "CircuitReset@1"]])).toMatchObject(Result.fail({ rule: "missing-version", version: 1 }))
  })
})
