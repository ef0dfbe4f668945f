/**
 * The far side: one receiver per lane, with the moods its lane was drawn with. What it got, what it took and what it
 * answered is what the oracle believes, whatever our own records say.
 *
 * Some drop duplicates, some would do the work twice; of those, some can be asked what became of a request. A WhatsApp
 * sender's answer proves nothing about the recipient: that comes later, in receipts.
 */
import { Effect } from "effect"
import type { Sender } from "../../src/application/deliver/Senders.ts"
import type { Doubted, OutboundMessage, Reply } from "../../src/application/ports/Channels.ts"
import { outcomeOfFailure, outcomeOfStatus, withoutDedupe } from "../../src/domain/delivery/classify.ts"
import type { AttemptOutcome } from "../../src/domain/delivery/outcome.ts"
import type { DestinationId } from "../../src/domain/ids.ts"
import type { Process } from "./process.ts"
import { providerNameOf, sayLater } from "./receipts.ts"
import { type Behaviour, behaviours } from "./swarm.ts"
import type { World } from "./world.ts"

export interface Received {
  readonly message: OutboundMessage
  /** Null when it never answered. */
  readonly status: number | null
  /** Whether the work was done, whatever was answered. */
  readonly took: boolean
  /** It said in so many words that it did not do the work. */
  readonly declined: boolean
  readonly retryAfterMs: number | null
  /** Null unless it did not try the message. */
  readonly deferMs: number | null
}

const scopes: Partial<Record<Behaviour, "message" | "lane" | "circuit">> = {
  putOff: "message",
  throttled: "lane",
  outOfUse: "circuit"
}

const drawBehaviour = ({ dice, healed, laneOf }: World, lane: DestinationId): Behaviour => {
  if (healed) return "ok"
  const weights = laneOf(lane).behaviours
  let die = dice.next() * behaviours.reduce((sum, behaviour) => sum + weights[behaviour], 0)
  for (const behaviour of behaviours) {
    die -= weights[behaviour]
    if (die < 0) return behaviour
  }
  return "ok"
}

const statusOf = (behaviour: Behaviour): number | null => {
  switch (behaviour) {
    case "ok":
    case "slow":
    case "answerLost":
      return 200
    case "hang":
    case "reset":
      return null
    case "putOff":
    case "throttled":
    case "outOfUse":
      return 400
    default:
      return Number(behaviour)
  }
}

const deferred = (scope: "message" | "lane" | "circuit", afterMs: number, durationMs: number): AttemptOutcome => ({
  type: "Deferred",
  error: { code: scope, message: "not now", retryable: true },
  status: 400,
  scope,
  afterMs,
  durationMs
})

/** Answers that leave it open whether the work was done. */
const isOpen = (status: number | null) => status === null || status === 500 || status === 503 || status === 302

export const channelOf = (world: World, process: Process): Sender => {
  const { dice, timeline, swarm } = world
  const named = ({ messageId, epoch, attempt }: Doubted) => `${world.nameOf(messageId)} attempt ${epoch}/${attempt}`

  /** The outcome as the channel of this lane understands it. */
  const understood = (message: OutboundMessage, outcome: AttemptOutcome, begun: boolean): AttemptOutcome => {
    const { channel, dedupes, doubtMs } = world.laneOf(message.destination)
    if (outcome.type === "Accepted" && channel === "whatsapp") {
      return { ...outcome, delivered: false, providerMessageId: providerNameOf(message) }
    }
    const doubted = dedupes ? outcome : withoutDedupe(outcome, begun)
    return doubted.type === "Unknown" ? { ...doubted, reconcileAfterMs: doubtMs } : doubted
  }

  const send = (message: OutboundMessage) => {
    world.oracle.requests.begins(message)
    return Effect.callback<Reply>((resume) => {
      const rates = world.healed ? { crashBefore: 0, crashAfter: 0, freeze: 0 } : swarm.channel
      const what = named(message)
      const die = dice.next()
      if (die < rates.crashBefore) {
        world.decided(process, "send", "crashBefore")
        return world.crash(process, `before sending ${what}`)
      }
      const crashAfter = die < rates.crashBefore + rates.crashAfter
      if (dice.chance(rates.freeze)) world.freeze(process)
      const behaviour = drawBehaviour(world, message.destination)
      world.decided(process, "send", crashAfter ? "crashAfter" : behaviour)
      const began = timeline.now
      const there = dice.next() * Math.min(10, swarm.deadlineMs / 4)
      const thinking = dice.next() * (behaviour === "slow" ? swarm.deadlineMs / 2 : 5)

      const reply = (outcome: AttemptOutcome, begun = true) => {
        const responseBody = outcome.type === "Accepted" ? "thank you" : null
        process.schedule(() => resume(Effect.succeed({ outcome: understood(message, outcome, begun), responseBody })))
      }
      const elapsed = () => Math.round(timeline.now - began)

      if (behaviour === "reset") {
        world.trace(process, `sends ${what}: reset`)
        return Effect.sync(timeline.after(there, () => reply(outcomeOfFailure("connection_failed", elapsed()), false)))
      }
      const arrive = () => {
        const status = statusOf(behaviour)
        const retryAfterMs = behaviour === "429" ? dice.pick([null, 0, 400, 3_000]) : null
        const scope = scopes[behaviour]
        const deferMs = scope === undefined ? null : dice.pick([0, 400, 3_000])
        const took = status === 200 || (isOpen(status) && dice.chance(0.5))
        world.trace(process, `sends ${what}: ${behaviour}${took ? "" : ", not taken"}`)
        world.oracle.requests.received({
          message,
          status,
          took,
          declined: !took && !isOpen(status),
          retryAfterMs,
          deferMs
        })
        if (took) sayLater(world, message)
        if (crashAfter) return world.crash(process, `after sending ${what}`)
        if (behaviour === "hang") {
          return void timeline.after(swarm.deadlineMs - there, () => reply(outcomeOfFailure("timeout", elapsed())))
        }
        timeline.after(thinking, () => {
          if (scope !== undefined && deferMs !== null) return reply(deferred(scope, deferMs, elapsed()))
          return behaviour === "answerLost" || status === null
            ? reply(outcomeOfFailure("connection_failed", elapsed()))
            : reply(outcomeOfStatus(status, elapsed(), retryAfterMs))
        })
      }
      // Interrupted before the first byte left: nothing is sent any more.
      return Effect.sync(timeline.after(there, arrive))
    })
  }

  /** Nobody knows about WhatsApp; its account says whether to send again at one's own risk. */
  const answerTo = (about: Doubted): "taken" | "notTaken" | "nobody" | "silence" => {
    const { channel, askable } = world.laneOf(about.destination)
    if (!askable) return "nobody"
    if (channel === "whatsapp") return "notTaken"
    if (!world.healed && dice.chance(0.3)) return "silence"
    return world.oracle.requests.wasTaken(about) ? "taken" : "notTaken"
  }

  const reconcile = (about: Doubted) =>
    Effect.callback<Reply>((resume) => {
      const { doubtMs } = world.laneOf(about.destination)
      const began = timeline.now
      return Effect.sync(
        timeline.after(dice.next() * 10, () => {
          const answer = answerTo(about)
          world.decided(process, "ask", answer)
          world.trace(process, `asks about ${named(about)}: ${answer}`)
          world.oracle.requests.asked(about, answer)
          const durationMs = Math.round(timeline.now - began)
          const error = { code: answer, message: "asked what became of it", retryable: true }
          const outcomes: Record<typeof answer, AttemptOutcome> = {
            taken: { type: "Accepted", status: 200, providerMessageId: null, delivered: true, durationMs },
            notTaken: { type: "Unreachable", error, status: null, retryAfterMs: null, durationMs },
            nobody: { type: "Unknown", error, status: null, reconcileAfterMs: null, durationMs },
            silence: { type: "Unknown", error, status: null, reconcileAfterMs: doubtMs, durationMs }
          }
          process.schedule(() => resume(Effect.succeed({ outcome: outcomes[answer], responseBody: null })))
        })
      )
    })

  return {
    send,
    reconcile,
    capacity: (_, destination) => Effect.succeed(world.laneOf(destination).capacity),
    dedupes: (_, destination) => Effect.succeed(world.laneOf(destination).dedupes),
    doubtMs: (_, destination) => Effect.succeed(world.laneOf(destination).doubtMs)
  }
}
