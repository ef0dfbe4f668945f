/**
 * Changes the circuit of a destination by a decision on its own facts; facts and state are written together. Answers
 * the state after the change, or null where nothing changes.
 */
import { Effect } from "effect"
import { type Circuit, evolve } from "../../domain/circuit/decider.ts"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import { stateOf } from "../../domain/circuit/state.ts"
import type { DestinationId } from "../../domain/ids.ts"
import { command, type Patience } from "../command.ts"
import { CommandedBy } from "../commandedBy.ts"
import { Circuits, type PresentCircuit } from "../ports/Circuits.ts"
import { Telemetry } from "../ports/Telemetry.ts"

export const changeCircuit = <E>(
  destination: DestinationId,
  decide: (circuit: Circuit, present: PresentCircuit) => Effect.Effect<ReadonlyArray<CircuitFact>, E>,
  patience: Patience
) =>
  command(
    {
      load: Effect.flatMap(Circuits, (circuits) => circuits.present(destination)),
      decide: Effect.fnUntraced(function* (present: PresentCircuit) {
        const { circuit, generation } = present
        const facts = yield* decide(circuit, present)
        const after = stateOf(facts.reduce(evolve, circuit), generation + facts.length)
        return facts.length === 0
          ? { entry: null, answer: null }
          : { entry: { generation, facts, after }, answer: after }
      }),
      append: Effect.fnUntraced(function* ({ generation, facts, after }) {
        const type = yield* (yield* Circuits).append(destination, generation, facts, after, yield* CommandedBy)
        if (type === "Appended") (yield* Telemetry).circuitChanged(destination, facts)
        return { type }
      })
    },
    patience
  )
