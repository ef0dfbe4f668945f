import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { can, evolve, initial, viewOf } from "../../../src/domain/event/event.ts"
import type { EventFact, EventPublished } from "../../../src/domain/event/facts.ts"
import { EventId, OrgId } from "../../../src/domain/ids.ts"

const orgId = OrgId.make("acme")
const published: EventPublished = {
  ...{ type: "EventPublished", orgId, eventType: "a", matched: 2, dossierId: null, orderingKey: null },
  ...{ correlationId: null, metadata: null, deliverAt: null, expiresAt: null }
}
const erased: EventFact = { type: "EventErased", orgId, reason: null }

describe("an event", () => {
  it("is published once", () => {
    expect(can(initial, published)).toBe(true)
    expect(can(evolve(initial, published), published)).toBe(false)
    expect(() => [published, published].reduce(evolve, initial)).toThrow("cannot follow its publication")
  })

  it("is erased once, and not before it is published", () => {
    expect(can(initial, erased)).toBe(false)
    expect(can(evolve(initial, published), erased)).toBe(true)
    expect(can([published, erased].reduce(evolve, initial), erased)).toBe(false)
  })

  it("is shown as its facts say", () => {
    const id = EventId.make("0197f3d0-0000-7000-8000-000000000001")
    const at = DateTime.makeUnsafe(0)
    expect(viewOf(id, at, [])).toBeNull()
    expect(viewOf(id, at, [published])).toMatchObject({ id, matched: 2, createdAt: at, bodyErased: false })
    expect(viewOf(id, at, [published, erased])).toMatchObject({ bodyErased: true })
  })
})
