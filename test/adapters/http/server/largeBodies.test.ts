/** A body that takes the event loop for long is decoded in a turn of its org, by its bytes; a small one at once. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Door, layer } from "../../../../src/adapters/http/server/door.ts"
import { limits, readJson } from "../../../../src/adapters/http/server/requestBody.ts"
import { PIECE } from "../../../../src/adapters/http/server/turns.ts"
import { AskedFor } from "../../../../src/application/askedFor.ts"
import { OrgId } from "../../../../src/domain/ids.ts"

/** The turns that reading a text of so many bytes takes, of whom and how much of each. */
const turnsFor = (bytes: number, org: OrgId | null) =>
  Effect.gen(function* () {
    const taken: Array<readonly [string, number]> = []
    const turns = {
      take: (who: string, weight: number, begin: () => void) => {
        taken.push([who, weight])
        begin()
      }
    }
    const request = new Request("http://posthaste.example", {
      method: "POST",
      // What asks for another protocol is read by means that a request without a socket has, too.
      headers: { "content-type": "application/json", upgrade: "h2c" },
      body: JSON.stringify("x".repeat(bytes - 2))
    })
    const door = yield* Door
    const json = yield* readJson(HttpServerRequest.fromWeb(request), limits.single).pipe(
      Effect.provideService(Door, { ...door, turns }),
      Effect.provideService(AskedFor, org)
    )
    expect(json.text).toHaveLength(bytes)
    return taken
  }).pipe(Effect.provide(layer(null)))

describe("a body", () => {
  it.effect("waits for a turn of its org that is as long as the body", () =>
    Effect.gen(function* () {
      const acme = OrgId.make("acme")
      expect(yield* turnsFor(1_000, acme)).toEqual([])
      expect(yield* turnsFor(limits.single / PIECE, acme)).toEqual([])
      expect(yield* turnsFor(limits.single / 2, acme)).toEqual([["acme", PIECE / 2]])
      expect(yield* turnsFor(limits.single, acme)).toEqual([["acme", PIECE]])
      expect(yield* turnsFor(limits.single, null)).toEqual([])
    })
  )
})
