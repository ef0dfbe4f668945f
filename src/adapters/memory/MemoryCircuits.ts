/** Circuits over plain maps: the journal of each, and its standing in the row of its lane. */
import { DateTime, Effect, Layer, Result } from "effect"
import { Circuits, type Report } from "../../application/ports/Circuits.ts"
import { widened } from "../../domain/circuit/policy.ts"
import { fromRecorded } from "../../domain/circuit/recorded.ts"
import type { Standing } from "../../domain/circuit/standing.ts"
import { journalOf } from "../../domain/configuration/changes.ts"
import { fromRecorded as configurationFact } from "../../domain/configuration/recorded.ts"
import { ChannelName, type DestinationId } from "../../domain/ids.ts"
import { changeLane, laneOf, writeCircuit } from "./lanes.ts"
import { Memory } from "./Memory.ts"
import { announceDueWork } from "./waiting.ts"

/** How long after a probe that told nothing the next one may start. */
const GIVEN_BACK_MS = 1_000

const counted = (standing: Standing, { succeeded, failures }: Report): Standing =>
  standing.status !== "CLOSED"
    ? standing
    : {
        ...standing,
        failures: succeeded ? failures : standing.failures + failures,
        inFlightMax: succeeded ? widened(standing.inFlightMax) : standing.inFlightMax
      }

export const layer = Layer.effect(
  Circuits,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const standingOf = (destination: DestinationId) => laneOf(tables, destination).standing

    return Circuits.of({
      load: (destination) =>
        Effect.sync(() => ({
          facts: (tables.journals.get(`circuit-${destination}`) ?? []).map((row) => ({
            at: row.at,
            fact: Result.getOrThrow(fromRecorded(row))
          })),
          now: now()
        })),
      standings: (destinations) => Effect.sync(() => destinations.map(standingOf)),
      report: (reports) =>
        Effect.sync(() => {
          const answers = new Map<DestinationId, Standing>()
          for (const report of reports) {
            const standing = standingOf(report.destination)
            if (standing.generation !== report.generation) continue
            const after = counted(standing, report)
            changeLane(tables, report.destination, { standing: after })
            answers.set(report.destination, after)
          }
          return answers
        }),
      giveBack: (destination, generation) =>
        Effect.sync(() => {
          const standing = standingOf(destination)
          if (standing.generation !== generation || standing.status !== "HALF_OPEN") return
          const shutUntil = DateTime.add(now(), { milliseconds: GIVEN_BACK_MS })
          changeLane(tables, destination, { standing: { ...standing, shutUntil } })
        }),
      orgOf: (destination) =>
        Effect.sync(() => {
          // Its journal outlives a destination that is removed.
          const [made] = ChannelName.literals.flatMap(
            (channel) => tables.journals.get(journalOf(channel, destination)) ?? []
          )
          return made === undefined ? null : Result.getOrThrow(configurationFact(made)).orgId
        }),
      append: (destination, generation, facts, after, actor) =>
        Effect.sync(() => {
          if (standingOf(destination).generation !== generation) return "Overtaken"
          writeCircuit(memory, destination, facts, after, actor)
          tables.hasNews = true
          announceDueWork(memory)
          return "Appended"
        })
    })
  })
)
