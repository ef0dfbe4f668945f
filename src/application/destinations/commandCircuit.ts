/**
 * The circuits of an org, as its people see and command them: every destination has one, also one that never
 * had trouble. Stop a destination by hand (`hold`), or close its circuit whatever it is (`reset`).
 *
 * A destination of another org is not found, exactly like one that never was.
 */
import { Effect, Result } from "effect"
import { type CircuitCommand, decide } from "../../domain/circuit/decider.ts"
import type { CircuitState } from "../../domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { type Page, StoreUnavailable } from "../errors.ts"
import { Circuits } from "../ports/Circuits.ts"
import { Endpoints } from "../ports/Endpoints.ts"
import { HttpTargets } from "../ports/HttpTargets.ts"
import { WhatsAppAccounts } from "../ports/WhatsAppAccounts.ts"
import { changeCircuit } from "./changeCircuit.ts"

export interface CircuitView {
  readonly destination: DestinationId
  readonly state: CircuitState
}

type ByHand = Extract<CircuitCommand, { readonly type: "HoldCircuit" | "ResetCircuit" }>

/** In the order of their destinations' ids. */
export const listCircuits = Effect.fnUntraced(function* (
  orgId: OrgId,
  { cursor, limit }: { readonly cursor: string | null; readonly limit: number }
): Effect.fn.Return<Page<CircuitView>, StoreUnavailable, Endpoints | HttpTargets | WhatsAppAccounts | Circuits> {
  // Every kind of destination lists by id and its cursor is the last id, so the lists can be read as one.
  const page = { cursor, limit: limit + 1 }
  const kinds = [
    yield* (yield* Endpoints).list(orgId, page),
    yield* (yield* HttpTargets).list(orgId, page),
    yield* (yield* WhatsAppAccounts).list(orgId, page)
  ]
  const ids = kinds.flatMap(({ items }) => items.map(({ id }) => id)).toSorted()
  const destinations = ids.slice(0, limit)
  const states = yield* (yield* Circuits).states(destinations)
  return {
    items: destinations.map((destination, index) => ({ destination, state: states[index]! })),
    nextCursor: ids.length > limit ? destinations.at(-1)! : null
  }
})

/** Null when the org has no such destination. A command that changes nothing is no mistake. */
export const commandCircuit = Effect.fnUntraced(function* (orgId: OrgId, destination: DestinationId, command: ByHand) {
  const known =
    (yield* (yield* Endpoints).get(orgId, destination)) ??
    (yield* (yield* HttpTargets).get(orgId, destination)) ??
    (yield* (yield* WhatsAppAccounts).get(orgId, destination))
  if (known === null) return null
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
