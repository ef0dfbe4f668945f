/**
 * What a seed draws before its world begins: how much there is to do, how Posthaste is set up and what goes
 * wrong how often. A fault that is absent in half of the worlds leaves room for what it would have hidden.
 */
import type { CircuitPolicy } from "../../src/domain/circuit/policy.ts"
import type { RateLimit } from "../../src/domain/delivery/rateLimit.ts"
import type { RetryPolicy } from "../../src/domain/delivery/retry.ts"
import type { OnDeadLetter } from "../../src/domain/message/queueChange.ts"
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
  readonly channel: "webhook" | "http" | "whatsapp"
  readonly capacity: number
  readonly retry: RetryPolicy | null
  readonly rateLimit: RateLimit | null
  readonly onDeadLetter: OnDeadLetter
  /** How many ordering keys its messages use; 0: none. */
  readonly keys: number
  /** The far side drops a duplicate. */
  readonly dedupes: boolean
  /** Whether an attempt in doubt can be asked about; for WhatsApp, whether it is sent again when no receipt came. */
  readonly askable: boolean
  readonly doubtMs: number
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
  "410",
  "putOff",
  "throttled",
  "outOfUse"
] as const
export type Behaviour = (typeof behaviours)[number]

/** Every kind of call that a process makes to the store. */
export const storeCalls = [
  "load",
  "loadMany",
  "append",
  "readAll",
  "claim",
  "claimOne",
  "release",
  "putBack",
  "renew",
  "takeOver",
  "deferLane",
  "nextDueAt",
  "position",
  "project",
  "views",
  "destination",
  "body",
  "provider",
  "circuit",
  "report",
  "circuitAppend",
  "replays",
  "journal"
] as const
/** Those that only worlds with troubles make (see drawTroubles). */
export const repairCalls = ["park", "repair", "archive"] as const
export type StoreCall = (typeof storeCalls)[number] | (typeof repairCalls)[number]

/** Made so seldom that few of them would meet a fault, so they meet each at a rate of their own. */
export const rareCalls: ReadonlySet<StoreCall> = new Set([
  "putBack",
  "claimOne",
  "deferLane",
  "body",
  "provider",
  "park",
  "repair",
  "archive"
])

export const results = ["failBefore", "failAfter", "slow", "freeze", "crashBefore", "crashAfter"] as const

/** What people do to destinations and dead letters while messages are on their way. */
export const operations = ["hold", "reset", "pause", "limit", "policy", "replay"] as const
export type Operation = (typeof operations)[number]

export const disturbances = ["kill", "freeze", "jump", "stop"] as const
export type Disturbance = (typeof disturbances)[number]

export interface Swarm {
  readonly opsMax: number
  readonly workers: number
  /** How many of the workers also keep the projections and do replays. */
  readonly keepers: number
  /** How many facts a projection takes at once: with few, it is behind by several pages all the time. */
  readonly factsAtOnce: number
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
  /** How likely a message is to be sent at one moment with others, and when that is. */
  readonly bursts: number
  readonly burstAtMs: number
  /** When everything that goes wrong stops going wrong. */
  readonly healAtMs: number
  readonly store: FaultRates
  /** Calls that meet these faults more, or less, often than the others. */
  readonly emphasis: ReadonlyMap<StoreCall, number>
  readonly rareFaults: number
  /** How likely the database crashes right after a commit that is not on its disk yet. */
  readonly databaseCrashes: number
  /** How likely a receiver that took a message also says so later, and by another way. */
  readonly receipts: number
  /** How likely whoever sent a message erases its body later. */
  readonly erasures: number
  /** Operations, and the mean time between two of them. */
  readonly operations: ReadonlyArray<Operation>
  readonly operationMs: number
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
    ...(dice.chance(0.7) ? { attemptsMax: dice.pick([1, 1, 2, 3, 5]) } : {}),
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

export const someRate = (dice: Dice): RateLimit => ({
  limit: dice.pick([2, 5, 20, 200]),
  periodMs: dice.pick([500, 1_000])
})

/**
 * What a world is about. `deadly`: so much goes wrong at the far side that most messages become dead letters.
 * `choking`: one slow destination gets many messages at once and keeps putting us off.
 */
type Theme = "mixed" | "deadly" | "choking"

const retryOf: Record<Theme, (dice: Dice) => RetryPolicy | null> = {
  mixed: (dice) => (dice.chance(0.8) ? retryPolicies(dice) : null),
  deadly: (dice) => ({ strategy: "fixed", baseMs: 50, attemptsMax: dice.between(1, 2) }),
  choking: () => ({ strategy: "fixed", baseMs: 2_000, attemptsMax: 5 })
}

const choked: Partial<Record<Behaviour, number>> = { ok: 3, answerLost: 2, throttled: 2, outOfUse: 1 }

const lane = (dice: Dice, theme: Theme): LaneDraw => {
  const healthy = theme === "mixed" && dice.chance(0.3)
  const weight = () => (healthy || dice.chance(0.5) ? 0 : dice.between(1, 4))
  const channel = dice.pick(["webhook", "webhook", "http", "whatsapp"] as const)
  return {
    channel,
    rateLimit: channel === "whatsapp" || dice.chance(0.2) ? someRate(dice) : null,
    onDeadLetter: dice.pick(["skip", "block"] as const),
    keys: dice.pick([0, 0, 1, 2]),
    dedupes: channel === "webhook" || (channel === "http" && dice.chance(0.3)),
    askable: dice.chance(0.6),
    doubtMs: dice.pick([20, 500, 2_000]),
    capacity: theme === "choking" ? 1 : dice.pick([1, 2, 8]),
    // WhatsApp's own waits are hours.
    retry: retryOf[theme](dice) ?? (channel === "whatsapp" ? retryPolicies(dice) : null),
    behaviours: {
      ...(Object.fromEntries(behaviours.map((behaviour) => [behaviour, weight()])) as Record<Behaviour, number>),
      ok: healthy ? 1 : dice.pick([0, 1, 3, 6]),
      ...(theme === "choking" ? choked : {})
    }
  }
}

/** The same lane before a destination that puts nearly every message off, again and again. */
export const stubborn = (lane: LaneDraw): LaneDraw => ({
  ...lane,
  behaviours: { ...lane.behaviours, ok: 1, putOff: 60 }
})

const noFaults: FaultRates = { failBefore: 0, failAfter: 0, slow: 0, freeze: 0, crashBefore: 0, crashAfter: 0 }

/** The same swarm, where nothing goes wrong but what its troubles are: no process is away when it should repair. */
export const calm = (swarm: Swarm): Swarm => ({
  ...swarm,
  ...{ store: noFaults, channel: noFaults, rareFaults: 0, databaseCrashes: 0, disturbances: [], operations: [] },
  ...{ lostRequests: 0, lostAnswers: 0, lostWakeUps: 0, stopWhileAsking: 0 }
})

/** The same swarm for long, before destinations that hardly answer: messages stay on their way. */
export const hesitant = (swarm: Swarm): Swarm => ({
  ...swarm,
  healAtMs: Math.max(swarm.healAtMs, 12_000),
  lanes: swarm.lanes.map((lane) => ({
    ...lane,
    retry: { strategy: "fixed", baseMs: 100, attemptsMax: 100, jitter: [1, 1] },
    behaviours: { ...lane.behaviours, ok: 1, hang: 60, putOff: 30 }
  }))
})

/** What befalls the store itself. */
export const troubles = ["unreadable", "silence"] as const
export type TroubleKind = (typeof troubles)[number]

export interface Trouble {
  readonly kind: TroubleKind
  readonly atMs: number
  /** Of a silence. */
  readonly forMs: number
}

/** Few worlds have any: they are about little else, and somebody repairs the queue. Drawn by dice of their own. */
export const drawTroubles = (dice: Dice, healAtMs: number): ReadonlyArray<Trouble> => {
  if (!dice.chance(0.25)) return []
  const kinds = troubles.filter(() => dice.chance(0.5))
  return kinds.flatMap((kind) =>
    Array.from({ length: kind === "silence" ? 1 : dice.between(1, 4) }, () => ({
      kind,
      atMs: dice.next() * healAtMs,
      forMs: dice.between(1_000, 180_000)
    }))
  )
}

/** Some messages can't be read, sooner or later, in any case. */
export const drawUnreadable = (dice: Dice, healAtMs: number): ReadonlyArray<Trouble> =>
  Array.from({ length: dice.between(2, 6) }, () => ({ kind: "unreadable", atMs: dice.next() * healAtMs, forMs: 0 }))

export const draw = (dice: Dice): Swarm => {
  // With nothing else wrong, what kills and restarts do can't hide behind other faults.
  const faultless = dice.chance(0.2)
  const rate = (upTo: number) => (faultless || dice.chance(0.5) ? 0 : dice.next() * upTo)
  const theme = dice.pick(["mixed", "mixed", "mixed", "mixed", "deadly", "deadly", "choking"] as const)
  const kinds = disturbances.filter(() => dice.chance(0.6))
  const leaseMs = dice.pick([900, 2_000, 5_000, 20_000])
  return {
    opsMax: dice.pick([12, 60, 2048]),
    workers: dice.between(1, 4),
    keepers: dice.pick([1, 1, 1, 3]),
    apis: dice.between(1, 2),
    concurrency: dice.pick([1, 2, 4, 16]),
    leaseMs,
    graceMs: dice.pick([100, 1_000, 5_000]),
    deadlineMs: dice.pick([50, 300, 2_000]),
    circuit: { failuresMax: dice.pick([1, 2, 5]), openMs: dice.pick([100, 1_500]), openMaxMs: 4_000 },
    arrivalMs: dice.pick([20, 1_000, 15_000]),
    lanes: Array.from({ length: theme === "choking" ? 1 : dice.between(1, 4) }, () => lane(dice, theme)),
    messages: theme === "choking" ? dice.between(8, 16) : dice.between(3, 12),
    bursts: theme === "choking" ? 0.9 : dice.pick([0, 0, 0.5]),
    burstAtMs: dice.between(100, 1_500),
    healAtMs: dice.pick([2_000, 5_000, 12_000]),
    store: {
      failBefore: rate(0.2),
      failAfter: rate(0.2),
      slow: rate(0.1),
      freeze: rate(0.05),
      crashBefore: rate(0.04),
      crashAfter: rate(0.04)
    },
    emphasis: new Map(storeCalls.map((call) => [call, dice.pick([0, 1, 1, 3, 8])])),
    rareFaults: dice.pick([0, 0.08]),
    databaseCrashes: faultless ? 0 : dice.pick([0, 0, 0, 0.01, 0.1]),
    receipts: dice.pick([0, 0.3, 1]),
    erasures: dice.pick([0, 0, 0.2]),
    operations: operations.filter((operation) => dice.chance(theme === "deadly" && operation === "replay" ? 1 : 0.4)),
    operationMs: dice.pick([300, 1_500, 5_000]),
    channel: { crashBefore: rate(0.1), crashAfter: rate(0.1), freeze: rate(0.3) },
    lostRequests: rate(0.2),
    lostAnswers: rate(0.3),
    lostWakeUps: rate(0.5),
    disturbances: kinds,
    disturbanceMs: dice.pick([300, 1_500, 5_000]),
    stopWhileAsking: dice.chance(0.5) ? 0 : dice.next() * 0.02,
    skewMs: dice.pick([0, 0, 50, 3_000]),
    factsAtOnce: dice.pick([2_000, 3])
  }
}
