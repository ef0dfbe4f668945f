/** What a person may have written about another is gone with them, in every shape of a fact that has room for it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { erasedFact } from "../../../src/domain/erasure/erased.ts"
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
