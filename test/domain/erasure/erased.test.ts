/** What a person may have written about another is gone with them, in every shape of a fact that has room for it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { erasedActor, erasedFact, isErasable, isPersonal } from "../../../src/domain/erasure/erased.ts"
import { fromRecorded as eventFact } from "../../../src/domain/event/facts.ts"
import { fromRecorded as messageFact } from "../../../src/domain/message/recorded.ts"

const folder = join(import.meta.dirname, "../facts")
const said = "what Erika said on the phone"

/** Shapes whose reason can be any text. */
const shapes = readdirSync(folder).flatMap((file) => {
  const name = file.replace(".json", "")
  const data = JSON.parse(readFileSync(join(folder, file), "utf8")) as Record<string, unknown>
  if (!("reason" in data)) return []
  const fact = { name, data: JSON.stringify({ ...data, reason: said }) }
  const isRead = [messageFact, eventFact].some((read) =>
    Result.isSuccess(read(fact) as Result.Result<unknown, unknown>)
  )
  // Posthaste itself says why it gave an attempt up.
  return isRead && !name.startsWith("AttemptAbandoned@") ? [fact] : []
})

describe("a fact that says something of a person", () => {
  const fact = (data: unknown) => ({ name: "AttemptFailed@1", data: JSON.stringify(data) })
  const failed = (message: string) => fact({ attempt: 1, error: { code: "http_400", message, retryable: false } })

  it("is one that an erasure would change, and none once it has", () => {
    expect(isPersonal(failed(said), null)).toBe(true)
    expect(isPersonal(erasedFact(failed(said)), null)).toBe(false)
    expect(isPersonal(fact({ attempt: 1, to: "018f2f4e-7a3c-7000-8000-000000000000", metadata: null }), null)).toBe(
      false
    )
    // However its JSON is written.
    expect(isPersonal({ name: "AttemptStarted@1", data: '{ "attempt" : 1 }' }, null)).toBe(false)
  })

  it("is one of a command over a broker, which is known by its key", () => {
    expect(isPersonal(fact({ attempt: 1 }), "amqp:mustermann")).toBe(true)
    expect(isPersonal(fact({ attempt: 1 }), erasedActor("amqp:mustermann"))).toBe(false)
    expect([erasedActor("key:17"), erasedActor(null)]).toEqual(["key:17", null])
  })

  it("may be of any shape", () => {
    const shapes = [
      "17",
      '"Erika"',
      '["Erika"]',
      '{"error":"?","metadata":{"a":"Erika"}}',
      '{"selection":{"filter":"?","waiting":[]},"reason":"Erika"}'
    ]
    for (const data of shapes) {
      const strange = { name: "ReplayRequested@9", data }
      expect([data, isPersonal(strange, null)]).toEqual([data, true])
      expect(erasedFact(strange).data).not.toContain("Erika")
      expect(isPersonal(erasedFact(strange), null)).toBe(false)
    }
    for (const data of ["null", "{}", '{"n":1}'])
      expect(isPersonal({ name: "ReplayRequested@9", data }, null)).toBe(false)
  })

  it("is in a journal only where somebody is named", () => {
    const kinds = ["message", "event", "replay", "command", "blocked"]
    expect(kinds.map((kind) => isErasable(`${kind}-17`))).toEqual(kinds.map(() => true))
    expect(["circuit", "consent", "endpoint", "overdue", "erasure"].some((kind) => isErasable(`${kind}-17`))).toBe(
      false
    )
  })
})

describe("a reason that a person wrote", () => {
  it("is found in the samples", () => {
    expect(shapes.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["MessageCancelled@1", "MessageDismissed@1", "MessageReplayed@2", "EventErased@1"])
    )
  })

  it.each(shapes.map((fact) => [fact.name, fact] as const))("is erased from %s", (_, fact) => {
    expect(erasedFact(fact).data).not.toContain(said)
  })
})
