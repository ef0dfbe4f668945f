/**
 * The circuits of an org: every destination has one. An org may stop a destination by hand (`hold`) and close its
 * circuit in any state (`reset`).
 */
import { Effect, Result } from "effect"
import { type CircuitCommand, decide } from "../../domain/circuit/decider.ts"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { Circuits } from "../ports/Circuits.ts"
import { Destinations } from "../ports/Destinations.ts"
import { type PageRequest, StoreUnavailable } from "../ports/errors.ts"
import { changeCircuit } from "./changeCircuit.ts"

export interface CircuitView {
  readonly destination: DestinationId
  readonly state: CircuitState
}

type ByHand = Extract<CircuitCommand, { readonly type: "HoldCircuit" | "ResetCircuit" }>

export const listCircuits = Effect.fnUntraced(function* (orgId: OrgId, page: PageRequest) {
  const { items, nextCursor } = yield* (yield* Destinations).list(orgId, {}, page)
  const states = yield* (yield* Circuits).states(items.map(({ id }) => id))
  return { items: items.map(({ id }, index): CircuitView => ({ destination: id, state: states[index]! })), nextCursor }
})

export const readCircuit = Effect.fnUntraced(function* (orgId: OrgId, destination: DestinationId) {
  if ((yield* (yield* Destinations).get(orgId, destination)) === null) return null
  const [state] = yield* (yield* Circuits).states([destination])
  return { destination, state: state! } satisfies CircuitView
})

/** Null when the org has no such destination. A command without effect is accepted. */
export const commandCircuit = Effect.fnUntraced(function* (orgId: OrgId, destination: DestinationId, command: ByHand) {
  if ((yield* (yield* Destinations).get(orgId, destination)) === null) return null
  const changed = yield* changeCircuit(
    destination,
    (circuit) => Effect.succeed(Result.getOrThrow(decide(circuit, command))),
    { tries: TRIES }
  ).pipe(
    Effect.catchTag("Overtaken", () =>
      Effect.fail(new StoreUnavailable({ cause: new Error("the circuit changes all the time") }))
    )
  )
  return { destination, state: changed ?? (yield* (yield* Circuits).states([destination]))[0]! }
})

const TRIES = 10
