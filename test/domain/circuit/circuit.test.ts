import { describe, expect, it } from "vitest"
import { can, evolve, initial, replay } from "../../../src/domain/circuit/decider.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import type { CircuitStatus } from "../../../src/domain/circuit/machine.ts"
import { circuitDefaults, openWaitMs, widened } from "../../../src/domain/circuit/policy.ts"
import { initialState, stateOf } from "../../../src/domain/circuit/state.ts"
import {
  closed,
  countFailures,
  expiredToken,
  given,
  held,
  holdCircuit,
  noonPlus,
  openedUntil,
  probedUntil,
  reopenedUntil,
  reset,
  resetCircuit,
  settleProbe,
  startProbe
} from "./given.ts"

const open = [openedUntil(30_000)]
const halfOpen = [...open, probedUntil(33_000)]

describe("a closed circuit", () => {
  it("stays closed below the threshold", () => {
    given().when(countFailures(4)).then().in("CLOSED")
  })

  it("opens at the threshold, for half a minute", () => {
    given().when(countFailures(5)).then(openedUntil(30_000)).in("OPEN")
  })

  it("opens at the first failure that is decisive, and says why", () => {
    given()
      .when(countFailures(1, 0, expiredToken))
      .then(openedUntil(30_000, 1, expiredToken))
      .in("OPEN")
    given()
      .when(countFailures(0, 0, expiredToken))
      .then()
      .in("CLOSED")
  })

  it("opens again after it was closed, as if for the first time", () => {
    given(...halfOpen, closed)
      .when(countFailures(5, 60_000))
      .then(openedUntil(90_000))
      .in("OPEN")
  })

  it("can be held, and does not mind being reset", () => {
    given().when(holdCircuit).then(held).in("HELD")
    given().when(resetCircuit).then().in("CLOSED")
  })
})

describe("an open circuit", () => {
  it("lets nobody through before its silence is over", () => {
    given(...open)
      .when(startProbe(29_999))
      .thenTooEarly()
  })

  it("lets one message through when its silence is over", () => {
    given(...open)
      .when(startProbe(30_000))
      .then(probedUntil(33_000))
      .in("HALF_OPEN")
  })

  it("does not count what was sent before it opened", () => {
    given(...open)
      .when(countFailures(9))
      .then()
      .in("OPEN")
    given(...open)
      .when(settleProbe(true, 1_000))
      .then()
      .in("OPEN")
  })

  it("can be held and reset", () => {
    given(...open)
      .when(holdCircuit)
      .then(held)
      .in("HELD")
    given(...open)
      .when(resetCircuit)
      .then(reset)
      .in("CLOSED")
  })
})

describe("a half-open circuit", () => {
  it("closes when its probe succeeds", () => {
    given(...halfOpen)
      .when(settleProbe(true, 31_000))
      .then(closed)
      .in("CLOSED")
  })

  it("is silent for twice as long when its probe fails", () => {
    given(...halfOpen)
      .when(settleProbe(false, 31_000))
      .then(reopenedUntil(91_000, 2))
      .in("OPEN")
  })

  it("is silent for longer when its probe meets what is still not put right", () => {
    given(openedUntil(30_000, 1, expiredToken), probedUntil(33_000))
      .when(settleProbe(false, 31_000, expiredToken))
      .then(reopenedUntil(91_000, 2, expiredToken))
      .in("OPEN")
  })

  it("lets nobody else through while the permit lives, and somebody when it has run out", () => {
    given(...halfOpen)
      .when(startProbe(32_999))
      .thenTooEarly()
    given(...halfOpen)
      .when(startProbe(33_000))
      .then(probedUntil(36_000))
      .in("HALF_OPEN")
  })

  it("can be held and reset", () => {
    given(...halfOpen)
      .when(holdCircuit)
      .then(held)
      .in("HELD")
    given(...halfOpen)
      .when(resetCircuit)
      .then(reset)
      .in("CLOSED")
  })
})

describe("a held circuit", () => {
  it("lets nobody through, counts nothing and is held only once", () => {
    given(held).when(startProbe(1e9)).thenTooEarly()
    given(held).when(countFailures(9)).then().in("HELD")
    given(...halfOpen, held)
      .when(settleProbe(true, 31_000))
      .then()
      .in("HELD")
    given(held).when(holdCircuit).then().in("HELD")
  })

  it("ends with a reset, and only with that", () => {
    given(held).when(resetCircuit).then(reset).in("CLOSED")
  })
})

describe("the law", () => {
  const histories: Record<CircuitStatus, ReadonlyArray<CircuitFact>> = {
    CLOSED: [],
    OPEN: open,
    HALF_OPEN: halfOpen,
    HELD: [held]
  }
  const allowed: Record<CircuitStatus, ReadonlyArray<CircuitFact["type"]>> = {
    CLOSED: ["CircuitOpened", "CircuitHeld"],
    OPEN: ["CircuitProbed", "CircuitHeld", "CircuitReset"],
    HALF_OPEN: ["CircuitProbed", "CircuitClosed", "CircuitReopened", "CircuitHeld", "CircuitReset"],
    HELD: ["CircuitReset"]
  }
  const facts = [openedUntil(90_000), probedUntil(90_000), closed, reopenedUntil(90_000, 2), held, reset]

  for (const [status, history] of Object.entries(histories)) {
    it(`allows in ${status} these facts and no other`, () => {
      const types = facts.filter((fact) => can(replay(history), fact)).map(({ type }) => type)
      expect(types).toEqual(allowed[status as CircuitStatus])
    })
  }

  it("refuses an opening without failures, one that is counted wrongly and a permit within the silence", () => {
    expect(can(initial, { type: "CircuitOpened", failures: 0, until: noonPlus(1), openings: 1, error: null })).toBe(
      false
    )
    expect(can(initial, { type: "CircuitOpened", failures: 5, until: noonPlus(1), openings: 2, error: null })).toBe(
      false
    )
    expect(can(replay(halfOpen), reopenedUntil(90_000, 3))).toBe(false)
    expect(can(replay(open), probedUntil(30_000))).toBe(false)
  })

  it("does not survive an impossible history", () => {
    expect(() => evolve(initial, closed)).toThrow("CircuitClosed cannot follow CLOSED")
    expect(() => replay([closed, closed])).toThrow("CircuitClosed cannot follow CLOSED")
  })
})

describe("a silence", () => {
  it("doubles with each opening, up to a cap", () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 50].map((openings) => openWaitMs(circuitDefaults, openings, 0) / 1_000)
    expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900, 900])
  })

  it("is longer by up to a fifth, never shorter", () => {
    expect(openWaitMs(circuitDefaults, 1, 0.5)).toBe(33_000)
    expect(openWaitMs(circuitDefaults, 1, 0.999999)).toBe(36_000)
  })
})

describe("where a circuit stands", () => {
  it("is at rest as long as nobody wrote about it", () => {
    expect(stateOf(initial, 0)).toEqual(initialState)
  })

  it("names when its lane may be visited again: after the silence, or after the permit", () => {
    const state = (history: ReadonlyArray<CircuitFact>) => stateOf(replay(history), history.length)
    expect(state(open)).toMatchObject({ status: "OPEN", generation: 1, failures: 5, blockedUntil: noonPlus(30_000) })
    expect(state(halfOpen)).toMatchObject({ status: "HALF_OPEN", failures: 5, blockedUntil: noonPlus(33_000) })
    expect(state([...open, held])).toMatchObject({ status: "HELD", blockedUntil: null })
  })

  it("lets traffic back in slowly after it was closed, by a probe or by hand", () => {
    for (const ending of [closed, reset]) {
      const history = [...halfOpen, ending]
      expect(stateOf(replay(history), history.length)).toEqual({
        status: "CLOSED",
        generation: 3,
        failures: 0,
        blockedUntil: null,
        inFlightMax: 1
      })
    }
  })

  it("allows twice as much after each success, until nothing limits it", () => {
    expect([1, 2, 256, 512, null].map(widened)).toEqual([2, 4, 512, null, null])
  })
})
