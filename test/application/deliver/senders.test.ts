/** What every open channel answers about a destination, whether it is there, gone or can't be read. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { OpenDestination } from "../../../src/application/ports/Destinations.ts"
import { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { destinationOf, http, senderKnowing, webhook, whatsapp } from "../../contracts/destinations/samples.ts"
import { newLane } from "../../contracts/sample.ts"

const org = OrgId.make("acme")

type Found = Effect.Effect<OpenDestination | null, StoreUnavailable>

const gone: Found = Effect.succeed(null)
const away: Found = Effect.fail(new StoreUnavailable({ cause: new Error("away") }))
const unreadable: Found = Effect.die(new Error("a secret does not open"))
const target = (idempotency: "header" | "none"): Found => {
  const settings = { url: "https://psp.example", idempotency, maxInFlight: 3 }
  return Effect.succeed({ destination: destinationOf(http, org, settings), secrets: {}, previousSecrets: [] })
}

describe("whether duplicates are dropped", () => {
  it.effect.each([
    ["always, by the endpoints of a webhook", webhook, [gone, away, unreadable], true],
    ["never, by WhatsApp", whatsapp, [gone, away, unreadable], false],
    ["by an HTTP target that says so", http, [target("header")], true],
    ["not by an HTTP target that does not, or of which nothing is known", http, [target("none"), gone, away], false]
  ] as const)("is known: %s", ([, channel, found, dedupes]) =>
    Effect.scoped(
      Effect.forEach(found as ReadonlyArray<Found>, (each) =>
        Effect.gen(function* () {
          const sender = yield* senderKnowing(channel, () => each)
          expect(yield* sender.dedupes(org, newLane())).toBe(dedupes)
        })
      )
    )
  )
})

describe("a destination of another channel", () => {
  it.effect("is none of this one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const sender = yield* senderKnowing(webhook, () => target("header"))
        const about = { orgId: org, destination: newLane() }
        const { outcome } = yield* sender.send(about as Parameters<typeof sender.send>[0])
        expect(outcome).toMatchObject({ type: "Refused", error: { code: "endpoint_missing" } })
      })
    )
  )
})
