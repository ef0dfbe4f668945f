/**
 * What a seed draws before its world begins: how much there is to do, how Posthaste is set up and what goes
 * wrong how often. A fault that is absent in half of the worlds leaves room for what it would have hidden.
 */
import type { CircuitPolicy } from "../../src/domain/circuit/policy.ts"
import type { RetryPolicy } from "../../src/domain/retry.ts"
import type { Dice } from "./dice.ts"

/** Probabilities per call. */
export interface FaultRates {
  readonly failBefore: number
  readonly failAfter: number
  readonly slow: number
  /** The process is paused the moment its request has left. */
  readonly freeze: number
  readonly crashBefore: number
  readonly crashAfter: number
}

export interface LaneDraw {
  readonly capacity: number
  readonly retry: RetryPolicy | null
  /** How likely each behaviour of the receiver is, against the others. */
  readonly behaviours: Readonly<Record<Behaviour, number>>
}

export const behaviours = [
  "ok",
  "slow",
  "hang",
  "reset",
  "answerLost",
  "500",
  "503",
  "429",
  "302",
  "404",
  "410"
] as const
export type Behaviour = (typeof behaviours)[number]

export const storeCalls = [
  "load",
  "loadMany",
  "append",
  "readAll",
  "claim",
  "release",
  "renew",
  "takeOver",
  "nextDueAt",
  "position",
  "project",
  "endpoint",
  "circuit",
  "report",
  "circuitAppend"
] as const

export const disturbances = ["kill", "freeze", "jump", "stop"] as const
export type Disturbance = (typeof disturbances)[number]

export interface Swarm {
  readonly opsMax: number
  readonly workers: number
  readonly apis: number
  readonly concurrency: number
  readonly leaseMs: number
  readonly graceMs: number
  readonly deadlineMs: number
  readonly circuit: CircuitPolicy
  readonly lanes: ReadonlyArray<LaneDraw>
  readonly messages: number
  /** How long it takes until the last client has come. */
  readonly arrivalMs: number
  /** When everything that goes wrong stops going wrong. */
  readonly healAtMs: number
  readonly store: FaultRates
  /** Calls that meet these faults more, or less, often than the others. */
  readonly emphasis: ReadonlyMap<string, number>
  readonly channel: Pick<FaultRates, "crashBefore" | "crashAfter" | "freeze">
  /** Of the network between clients and the API: requests and answers that get lost. */
  readonly lostRequests: number
  readonly lostAnswers: number
  /** Wake-ups that are never heard. */
  readonly lostWakeUps: number
  /** What happens to processes out of the blue, and the mean time between two of them. */
  readonly disturbances: ReadonlyArray<Disturbance>
  readonly disturbanceMs: number
  /** How likely a worker is asked to stop while one of its calls is under way. */
  readonly stopWhileAsking: number
  readonly skewMs: number
}

const retryPolicies = (dice: Dice): RetryPolicy => {
  const limits = {
    ...(dice.chance(0.7) ? { attemptsMax: dice.between(1, 5) } : {}),
    ...(dice.chance(0.2) ? { ageMaxMs: dice.between(500, 20_000) } : {}),
    ...(dice.chance(0.4) ? { jitter: [0.5, 1.5] as const } : {})
  }
  const wait = () => dice.pick([0, 1, 20, 200, 1_000, 4_000])
  return dice.chance(0.4)
    ? { strategy: "schedule", waitsMs: Array.from({ length: dice.between(1, 4) }, wait), ...limits }
    : {
        strategy: dice.pick(["exponential", "linear", "fixed"] as const),
        baseMs: wait(),
        capMs: 5_000,
        factor: dice.pick([1, 2, 3]),
        ...limits
      }
}

const lane = (dice: Dice): LaneDraw => {
  const healthy = dice.chance(0.3)
  const weight = () => (healthy || dice.chance(0.5) ? 0 : dice.between(1, 4))
  return {
    capacity: dice.pick([1, 2, 8]),
    retry: dice.chance(0.8) ? retryPolicies(dice) : null,
    behaviours: {
      ...(Object.fromEntries(behaviours.map((behaviour) => [behaviour, weight()])) as Record<Behaviour, number>),
      ok: dice.between(1, 6)
    }
  }
}

export const draw = (dice: Dice): Swarm => {
  // With nothing else wrong, what kills and restarts do can't hide behind other faults.
  const faultless = dice.chance(0.2)
  const rate = (upTo: number) => (faultless || dice.chance(0.5) ? 0 : dice.next() * upTo)
  const kinds = disturbances.filter(() => dice.chance(0.6))
  const leaseMs = dice.pick([600, 1_500, 5_000, 20_000])
  return {
    opsMax: dice.pick([12, 60, 2048]),
    workers: dice.between(1, 4),
    apis: dice.between(1, 2),
    concurrency: dice.pick([1, 2, 4, 16]),
    leaseMs,
    graceMs: dice.pick([100, 1_000, 5_000]),
    deadlineMs: dice.pick([50, 300, 2_000]),
    circuit: { failuresMax: dice.pick([1, 3, 1_000]), openMs: dice.pick([100, 1_500]), openMaxMs: 4_000 },
    arrivalMs: dice.pick([20, 1_000, 15_000]),
    lanes: Array.from({ length: dice.between(1, 4) }, () => lane(dice)),
    messages: dice.between(3, 15),
    healAtMs: dice.pick([2_000, 8_000, 25_000]),
    store: {
      failBefore: rate(0.2),
      failAfter: rate(0.2),
      slow: rate(0.1),
      freeze: rate(0.05),
      crashBefore: rate(0.04),
      crashAfter: rate(0.04)
    },
    emphasis: new Map(storeCalls.map((call) => [call, dice.pick([0, 1, 1, 3, 8])])),
    channel: { crashBefore: rate(0.1), crashAfter: rate(0.1), freeze: rate(0.3) },
    lostRequests: rate(0.2),
    lostAnswers: rate(0.3),
    lostWakeUps: rate(0.5),
    disturbances: kinds,
    disturbanceMs: dice.pick([300, 1_500, 5_000]),
    stopWhileAsking: dice.chance(0.5) ? 0 : dice.next() * 0.02,
    skewMs: dice.pick([0, 0, 50, 3_000])
  }
}
