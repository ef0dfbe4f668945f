/** Circuits over plain maps: the journal of each, and its standing in the row of its lane. */
import { Effect, Layer, Result } from "effect"
import { Circuits, type Report } from "../../../src/application/ports/Circuits.ts"
import { replay } from "../../../src/domain/circuit/decider.ts"
import { fromRecorded } from "../../../src/domain/circuit/facts.ts"
import { widened } from "../../../src/domain/circuit/policy.ts"
import type { CircuitState } from "../../../src/domain/circuit/state.ts"
import type { DestinationId } from "../../../src/domain/ids.ts"
import { changeLane, laneOf, writeCircuit } from "../deliver/lanes.ts"
import { announceDueWork } from "../deliver/waiting.ts"
import { Memory } from "../Memory.ts"

const counted = (state: CircuitState, { succeeded, failures }: Report): CircuitState =>
  state.status !== "CLOSED"
    ? state
    : {
        ...state,
        failures: succeeded ? failures : state.failures + failures,
        inFlightMax: succeeded ? widened(state.inFlightMax) : state.inFlightMax
      }

export const layer = Layer.effect(
  Circuits,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const stateOf = (destination: DestinationId) => laneOf(tables, destination).state

    return Circuits.of({
      present: (destination) =>
        Effect.sync(() => {
          const rows = tables.journals.get(`circuit-${destination}`) ?? []
          const facts = rows.map((row) => Result.getOrThrow(fromRecorded(row)))
          return { circuit: replay(facts), generation: rows.at(-1)?.version ?? 0, now: now() }
        }),
      states: (destinations) => Effect.sync(() => destinations.map(stateOf)),
      report: (reports) =>
        Effect.sync(() => {
          const answers = new Map<DestinationId, CircuitState>()
          for (const report of reports) {
            const state = stateOf(report.destination)
            if (state.generation !== report.generation) continue
            const after = counted(state, report)
            changeLane(tables, report.destination, { state: after })
            answers.set(report.destination, after)
          }
          return answers
        }),
      orgOf: (destination) => Effect.sync(() => tables.destinations.get(destination)?.destination.orgId ?? null),
      append: (destination, generation, facts, after, actor) =>
        Effect.sync(() => {
          if (stateOf(destination).generation !== generation) return "VersionConflict"
          writeCircuit(memory, destination, facts, after, actor)
          tables.hasNews = true
          announceDueWork(memory)
          return "Appended"
        })
    })
  })
)
