/**
 * Circuits: facts in the log, state in the lane's row, both changed by one call of change_circuit.
 */
import { DateTime, Effect, Layer, Result } from "effect"
import { Circuits, type Report } from "../../../application/ports/Circuits.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import { evolve, initial, resting, restingOn } from "../../../domain/circuit/decider.ts"
import type { CircuitFact } from "../../../domain/circuit/facts.ts"
import { fromRecorded, toRecorded } from "../../../domain/circuit/facts.ts"
import type { CircuitStatus } from "../../../domain/circuit/machine.ts"
import { type CircuitState, initialState } from "../../../domain/circuit/state.ts"
import type { DestinationId, OrgId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"

// From the last fact that rests the circuit, found from the end of the stream.
const presentStatement = prepared`select (extract(epoch from clock_timestamp()) * 1000)::bigint, coalesce(l.failures, 0), e.version, e.name, e.data
    from (select 1) one left join lane l on l.lane = $2
    left join event e on e.stream_id = $1 and e.version >= coalesce((
      select b.version from event b where b.stream_id = $1 and split_part(b.name, '@', 1) in (${resting.map((type) => `'${type}'`).join(", ")})
      order by b.version desc limit 1), 1)
    order by e.version`
const stateColumns =
  "lane, circuit, generation, failures, (extract(epoch from blocked_until) * 1000)::bigint, in_flight_max"
const statesStatement = prepared`select ${stateColumns} from lane where lane = any ($1::uuid[])`
const reportStatement = prepared`select ${stateColumns} from report_outcomes($1::uuid[], $2::int[], $3::boolean[], $4::int[])`
const orgOfStatement = prepared`select org_id from destination where id = $1`
const appendStatement = prepared`select change_circuit($1, $2, $3, $4::text[], $5::text[], $6, $7, $8, $9, $10)`

export const layer = Layer.effect(
  Circuits,
  Effect.gen(function* () {
    const { durable, queue, lookups } = yield* Postgres
    const pulse = yield* Pulse

    const present = (destination: DestinationId) =>
      reading(lookups.rows(presentStatement, [streamIdOf(`circuit-${destination}`), destination]), (rows) => {
        const facts = rows.flatMap(([_now, _failures, _version, name, data]) =>
          name == null || data == null ? [] : [Result.getOrThrow(fromRecorded({ name, data }))]
        )
        const [first, ...rest] = facts
        const base = first === undefined ? initial : restingOn(first, Number(rows[0]![1]))
        return {
          circuit: base === null ? facts.reduce(evolve, initial) : rest.reduce(evolve, base),
          generation: Number(rows.at(-1)![2] ?? 0),
          now: DateTime.makeUnsafe(Number(rows[0]![0]))
        }
      })

    const states = Effect.fnUntraced(function* (destinations: ReadonlyArray<DestinationId>) {
      const known = byLane(yield* unavailable(lookups.rows(statesStatement, [destinations])))
      return destinations.map((destination) => known.get(destination) ?? initialState)
    })

    // What is counted need not reach the disk: a count that a crash takes back is counted again by the next failures.
    const report = (reports: ReadonlyArray<Report>) =>
      reading(
        queue.rows(reportStatement, [
          reports.map(({ destination }) => destination),
          reports.map(({ generation }) => generation),
          reports.map(({ succeeded }) => succeeded),
          reports.map(({ failures }) => failures)
        ]),
        byLane
      )

    const append = Effect.fnUntraced(function* (
      destination: DestinationId,
      generation: number,
      facts: ReadonlyArray<CircuitFact>,
      after: CircuitState,
      actor: string | null
    ) {
      const recorded = facts.map(toRecorded)
      const rows = yield* unavailable(
        durable.rows(appendStatement, [
          destination,
          generation,
          streamIdOf(`circuit-${destination}`),
          recorded.map(({ name }) => name),
          recorded.map(({ data }) => data),
          after.status,
          after.failures,
          after.blockedUntil === null ? null : DateTime.formatIso(after.blockedUntil),
          after.inFlightMax,
          actor
        ])
      )
      if (rows[0]![0] !== "t") return "VersionConflict" as const
      yield* pulse.wake("queue", "log")
      return "Appended" as const
    })

    const orgOf = (destination: DestinationId) =>
      reading(lookups.rows(orgOfStatement, [destination]), ([row]) => (row === undefined ? null : (row[0] as OrgId)))

    return Circuits.of({ present, states, report, orgOf, append })
  })
)

const byLane = (rows: ReadonlyArray<ReadonlyArray<string | null>>): ReadonlyMap<DestinationId, CircuitState> =>
  new Map(
    rows.map(([lane, status, generation, failures, blockedUntil, inFlightMax]) => [
      lane as DestinationId,
      {
        status: status as CircuitStatus,
        generation: Number(generation),
        failures: Number(failures),
        blockedUntil: blockedUntil == null ? null : DateTime.makeUnsafe(Number(blockedUntil)),
        inFlightMax: inFlightMax == null ? null : Number(inFlightMax)
      }
    ])
  )
