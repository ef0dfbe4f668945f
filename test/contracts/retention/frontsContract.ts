/** What every adapter of `Retention` promises of journals that go on for ever. `layer` gives an empty store to each test. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { type DateTime, Duration, Effect, type Layer } from "effect"
import { changeCircuit } from "../../../src/application/destinations/changeCircuit.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { AlertProgress } from "../../../src/application/ports/AlertProgress.ts"
import { Archive } from "../../../src/application/ports/Archive.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { DestinationHealth } from "../../../src/application/ports/DestinationHealth.ts"
import { EventStore, type Position } from "../../../src/application/ports/EventStore.ts"
import { FactOutletProgress } from "../../../src/application/ports/FactOutletProgress.ts"
import { type JournalName, Journals } from "../../../src/application/ports/Journals.ts"
import { MessageViews } from "../../../src/application/ports/MessageViews.ts"
import { Parked } from "../../../src/application/ports/Parked.ts"
import { Projections } from "../../../src/application/ports/Projections.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { situationOf } from "../../../src/domain/circuit/situation.ts"
import { type DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { inMillis, newLane, now, readLogUntil, type StorePorts } from "../sample.ts"

type Ports = StorePorts | AlertProgress

const HOUR = 3_600_000
const later = () => inMillis(HOUR)

/** Sweeps to the end, in steps of so many; how many facts went. */
const sweepFronts = Effect.fnUntraced(function* (restedBefore: DateTime.Utc, limit = 2) {
  const retention = yield* Retention
  let removed = 0
  let from: string | null = null
  do {
    const sweep: Effect.Success<ReturnType<typeof retention.sweepFronts>> = yield* retention.sweepFronts(
      restedBefore,
      from,
      limit
    )
    removed += sweep!.removed
    from = sweep!.next
  } while (from !== null)
  return removed
})

/** Takes a run of a projection to a place, wherever it stands. */
const stand = Effect.fnUntraced(function* (name: "messages" | "health", to: Position, live = true) {
  const run = (yield* (yield* Projections).runs).find((each) => each.name === name && each.live === live)!
  const step = { generation: run.generation, from: run.position, to, facts: 0 }
  const written =
    name === "health" ? (yield* DestinationHealth).project(step, new Map()) : (yield* MessageViews).project(step, [])
  expect(yield* written).toBe(true)
})

const alertsStand = Effect.fnUntraced(function* (to: Position) {
  const alerts = yield* AlertProgress
  expect(yield* alerts.advance(yield* alerts.position, to, [], now())).toBe(true)
})

/** Whoever keeps a place in the log comes to its end. */
const readAll = Effect.gen(function* () {
  const projections = yield* Projections
  const isThere = (yield* projections.runs).some(({ name }) => name === "health")
  if (!isThere) yield* projections.build("health", 1, 0)
  const { head } = yield* (yield* EventStore).extent
  if (head === null) return
  for (const name of ["messages", "health"] as const) yield* stand(name, head)
  yield* alertsStand(head)
})

/** Until so many are gone: a store shows a fact a little later, and one that copies journals elsewhere first copies them. */
const swept = Effect.fnUntraced(function* (count: number) {
  for (let gone = 0; ; yield* Effect.sleep("20 millis")) {
    yield* readAll
    gone += yield* sweepFronts(later())
    if (gone >= count) return gone
  }
})

const holder = randomUUID()
const held: CircuitFact = { type: "CircuitHeld", reason: "a hunch" }
const reset: CircuitFact = { type: "CircuitReset", reason: null }

export const frontsContract = <E>(name: string, layer: Layer.Layer<Ports, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, Ports>) =>
    it.live(rule, () => Effect.provide(body, layer))

  /** One change after the other, by whoever decides on the circuit as it is. */
  const changed = Effect.fnUntraced(function* (destination: DestinationId, ...facts: ReadonlyArray<CircuitFact>) {
    for (const fact of facts) {
      const change = changeCircuit(destination, () => Effect.succeed([fact]), { tries: 1 })
      yield* Effect.catchTag(change, "Overtaken", () => Effect.die("nobody else is here"))
    }
  })
  const openedUntil = (seconds: number): ReadonlyArray<CircuitFact> => {
    const [until, expiresAt] = [inMillis(seconds * 1_000), inMillis((seconds + 5) * 1_000)]
    return [
      { type: "CircuitOpened", failures: 5, until, openings: 1, error: null },
      { type: "CircuitProbed", probe: MessageId.make(randomUUID()), expiresAt }
    ]
  }

  const versionsOf = (journal: JournalName) =>
    Effect.flatMap(Journals, ({ load }) => Effect.map(load(journal), (facts) => facts.map(({ version }) => version)))

  /** All that anybody knows of a circuit. */
  const seen = Effect.fnUntraced(function* (destination: DestinationId) {
    const circuits = yield* Circuits
    const { circuit, generation } = yield* circuits.present(destination)
    const history = (yield* circuits.load(destination)).facts
    const [state] = yield* circuits.states([destination])
    return { circuit, generation, state, situation: situationOf(history.map((each) => ({ ...each, actor: null }))) }
  })

  describe(`${name} fronts of journals`, () => {
    test(
      "are forgotten up to the last fact that rests, in every state of what follows, and versions go on",
      Effect.gen(function* () {
        const [closed, open, stopped, young, never] = [newLane(), newLane(), newLane(), newLane(), newLane()]
        const flap = [...openedUntil(1), { type: "CircuitClosed" } as const]
        yield* changed(closed, ...flap, ...flap, held, reset)
        yield* changed(open, ...flap, ...flap, ...openedUntil(60))
        yield* changed(stopped, ...flap, held)
        yield* changed(young, ...flap)
        yield* changed(never, ...openedUntil(60))
        const all = [closed, open, stopped, young, never]
        const before = yield* Effect.forEach(all, seen)
        expect(yield* sweepFronts(inMillis(-HOUR))).toBe(0)
        expect(yield* swept(7 + 5 + 2 + 2)).toBe(16)

        const left = yield* Effect.forEach(all, (id) => versionsOf(`circuit-${id}`))
        expect(left).toEqual([[8], [6, 7, 8], [3, 4], [3], [1, 2]])
        expect(yield* Effect.forEach(all, seen)).toEqual(before)
        // Nothing is left to forget, and life goes on.
        expect(yield* sweepFronts(later())).toBe(0)
        for (const id of [closed, young]) yield* changed(id, held, reset)
        yield* changed(stopped, reset)
        expect(yield* versionsOf(`circuit-${closed}`)).toEqual([8, 9, 10])
        expect(yield* swept(2 + 2 + 2)).toBe(6)
        expect(yield* Effect.forEach([closed, stopped, young], (id) => versionsOf(`circuit-${id}`))).toEqual([
          [10],
          [5],
          [5]
        ])
        expect((yield* seen(stopped)).state).toMatchObject({ status: "CLOSED", generation: 5 })
      })
    )

    test(
      "of what comes and goes with an alert target are forgotten likewise, and of other journals never",
      Effect.gen(function* () {
        const journals = yield* Journals
        const id = newLane()
        const of = (kind: string, names: ReadonlyArray<string>) => {
          const facts = names.map((name) => ({ name, data: '{"orgId":"acme"}' }))
          return journals.append(`${kind}-${id}`, 0, facts, now(), null)
        }
        yield* of("overdue", ["OverdueBegan@1", "OverdueEnded@1", "OverdueBegan@1", "OverdueEnded@1", "OverdueBegan@1"])
        yield* of("outage", ["BrokerLost@1", "BrokerBack@1"])
        yield* of("key", ["CircuitHeld@1", "CircuitReset@1"])
        expect(yield* swept(4)).toBe(4)
        expect(yield* versionsOf(`overdue-${id}`)).toEqual([4, 5])
        expect(yield* versionsOf(`outage-${id}`)).toEqual([2])
        expect(yield* versionsOf(`key-${id}`)).toEqual([1, 2])
        const next = [{ name: "OverdueEnded@1", data: '{"orgId":"acme"}' }]
        expect(yield* journals.append(`overdue-${id}`, 2, next, now(), null)).toBe("VersionConflict")
        expect(yield* journals.append(`overdue-${id}`, 5, next, now(), null)).toBe("Appended")
        expect(yield* journals.load(`overdue-${id}`, { after: 0, limit: 2 })).toMatchObject([
          { version: 4 },
          { version: 5 }
        ])
      })
    )

    test(
      "go up to the last fact that rests and is old enough, whatever came since",
      Effect.gen(function* () {
        const journals = yield* Journals
        const journal = `overdue-${newLane()}` as const
        const names = ["OverdueBegan@1", "OverdueEnded@1", "OverdueBegan@1", "OverdueEnded@1", "OverdueBegan@1"]
        for (const [n, name] of names.entries()) {
          const at = inMillis(n < 3 ? -3 * HOUR : -1_000)
          yield* journals.append(journal, n, [{ name, data: '{"orgId":"acme"}' }], at, null)
        }
        for (let gone = 0; gone < 1; yield* Effect.sleep("20 millis")) {
          yield* readAll
          gone += yield* sweepFronts(inMillis(-HOUR), 10)
        }
        yield* readLogUntil((facts) => facts.filter(({ stream }) => stream === journal).length === 4)
        yield* readAll
        expect(yield* sweepFronts(inMillis(-HOUR), 10)).toBe(0)
        expect(yield* versionsOf(journal)).toEqual([2, 3, 4, 5])
      })
    )

    test(
      "stay until everybody has read them, and the fact that rests, who keeps a place in the log",
      Effect.gen(function* () {
        const outlet = yield* FactOutletProgress
        const projections = yield* Projections
        const made = Effect.fnUntraced(function* () {
          const id = newLane()
          yield* changed(id, held, reset)
          const ofIt = ({ stream }: { readonly stream: string }) => stream === `circuit-${id}`
          const facts = yield* readLogUntil((facts) => facts.filter(ofIt).length === 2)
          const [front, rest] = facts.filter(ofIt).map(({ position }) => position)
          return { journal: `circuit-${id}` as const, front: front!, rest: rest! }
        })
        const one = yield* made()
        yield* readAll
        for (const [back, on] of [
          [stand("messages", one.front), stand("messages", one.rest)],
          [stand("health", one.front), stand("health", one.rest)],
          [alertsStand(one.front), alertsStand(one.rest)]
        ] as const) {
          yield* back
          expect(yield* sweepFronts(later())).toBe(0)
          yield* on
        }
        // It reads the whole log before it takes the place of the other.
        yield* projections.build("messages", 99, 0)
        expect(yield* sweepFronts(later())).toBe(0)
        yield* stand("messages", one.front, false)
        expect(yield* sweepFronts(later())).toBe(0)
        expect(yield* versionsOf(one.journal)).toEqual([1, 2])
        yield* stand("messages", one.rest, false)
        // Nobody has held it for as long as facts are kept.
        yield* outlet.begin(one.front)
        expect(yield* sweepFronts(later())).toBe(1)
        expect(yield* versionsOf(one.journal)).toEqual([2])

        const other = yield* made()
        yield* readAll
        yield* stand("messages", other.rest, false)
        expect(yield* outlet.hold(holder, Duration.hours(2))).toEqual({ position: one.front })
        expect(yield* sweepFronts(later())).toBe(0)
        expect(yield* outlet.advance(holder, Duration.hours(2), one.front, other.rest)).toBe(true)
        expect(yield* sweepFronts(later())).toBe(1)
        expect(yield* versionsOf(other.journal)).toEqual([2])
      })
    )

    test(
      "stay while the journal is parked",
      Effect.gen(function* () {
        const [parked, other] = [newLane(), newLane()]
        for (const id of [parked, other]) yield* changed(id, held, reset)
        const stream = `circuit-${parked}`
        yield* (yield* Parked).park(new Map([[stream, "failed"]]))
        expect(yield* swept(1)).toBe(1)
        expect(yield* versionsOf(`circuit-${parked}`)).toEqual([1, 2])
        expect(yield* versionsOf(`circuit-${other}`)).toEqual([2])
        // Where they are copied, they stay too.
        const copies = (yield* (yield* Archive).streams([stream])).get(stream)
        expect(copies?.map(({ version }) => version)).toEqual([1, 2])
      })
    )

    test(
      "are in the log and in the archive no more, also before they are gone from where they are copied",
      Effect.gen(function* () {
        const id = newLane()
        const stream = `circuit-${id}`
        yield* changed(id, held, reset, held)
        const ofIt = (facts: ReadonlyArray<{ readonly stream: string; readonly version: number }>) =>
          facts.flatMap((fact) => (fact.stream === stream ? fact.version : []))
        yield* readLogUntil((facts) => ofIt(facts).length === 3)
        expect(yield* swept(1)).toBe(1)
        expect(ofIt(yield* readLogUntil((facts) => ofIt(facts).length > 0))).toEqual([2, 3])
        const archive = yield* Archive
        expect(ofIt((yield* archive.streams([stream])).get(stream)!)).toEqual([2, 3])
        expect(ofIt(yield* archive.byStream(null, 1_000))).toEqual([2, 3])
        yield* changed(id, reset)
        expect(ofIt(yield* readLogUntil((facts) => ofIt(facts).length > 2))).toEqual([2, 3, 4])
      })
    )
  })
}
