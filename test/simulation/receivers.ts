/**
 * The far side: one receiver per lane, with the moods its lane was drawn with. What it got and what it
 * answered is what the oracle believes, whatever our own records say.
 */
import { Effect } from "effect"
import type { Channel, OutboundMessage, Reply } from "../../src/application/ports/Channels.ts"
import { outcomeOfFailure, outcomeOfStatus } from "../../src/domain/classify.ts"
import type { AttemptOutcome } from "../../src/domain/message/outcome.ts"
import type { Process } from "./process.ts"
import { type Behaviour, behaviours } from "./swarm.ts"
import type { World } from "./world.ts"

export interface Received {
  readonly message: OutboundMessage
  /** Null when it never answered. */
  readonly status: number | null
  readonly retryAfterMs: number | null
}

const drawBehaviour = ({ dice, healed, laneOf }: World, message: OutboundMessage): Behaviour => {
  if (healed) return "ok"
  const weights = laneOf(message.destination).behaviours
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
    default:
      return Number(behaviour)
  }
}

export const channelOf = (world: World, process: Process): Channel => {
  const { dice, timeline, swarm } = world

  const send = (message: OutboundMessage) =>
    Effect.callback<Reply>((resume) => {
      const rates = world.healed ? { crashBefore: 0, crashAfter: 0, freeze: 0 } : swarm.channel
      const what = `${world.nameOf(message.messageId)} attempt ${message.epoch}/${message.attempt}`
      const die = dice.next()
      if (die < rates.crashBefore) {
        world.decided(process, "send", "crashBefore")
        return world.crash(process, `before sending ${what}`)
      }
      const crashAfter = die < rates.crashBefore + rates.crashAfter
      if (dice.chance(rates.freeze)) world.freeze(process)
      const behaviour = drawBehaviour(world, message)
      world.decided(process, "send", crashAfter ? "crashAfter" : behaviour)
      const began = timeline.now
      const there = dice.next() * Math.min(10, swarm.deadlineMs / 4)
      const thinking = dice.next() * (behaviour === "slow" ? swarm.deadlineMs / 2 : 5)

      const reply = (outcome: AttemptOutcome) => {
        const responseBody = outcome.type === "Accepted" ? "thank you" : null
        process.schedule(() => resume(Effect.succeed({ outcome, responseBody })))
      }
      const elapsed = () => Math.round(timeline.now - began)
      const failed = () => reply(outcomeOfFailure("connection_failed", elapsed()))

      if (behaviour === "reset") {
        world.trace(process, `sends ${what}: reset`)
        return Effect.sync(timeline.after(there, failed))
      }
      const arrive = () => {
        const status = statusOf(behaviour)
        const retryAfterMs = behaviour === "429" ? dice.pick([null, 0, 400, 3_000]) : null
        world.trace(process, `sends ${what}: ${behaviour}`)
        world.oracle.received({ message, status, retryAfterMs })
        if (crashAfter) return world.crash(process, `after sending ${what}`)
        if (behaviour === "hang") {
          return void timeline.after(swarm.deadlineMs - there, () => reply(outcomeOfFailure("timeout", elapsed())))
        }
        timeline.after(thinking, () =>
          behaviour === "answerLost" || status === null
            ? failed()
            : reply(outcomeOfStatus(status, elapsed(), retryAfterMs))
        )
      }
      // Interrupted before the first byte left: nothing is sent any more.
      return Effect.sync(timeline.after(there, arrive))
    })

  return {
    send,
    capacity: (_, destination) => Effect.succeed(world.laneOf(destination).capacity),
    dedupes: () => Effect.succeed(true)
  }
}
