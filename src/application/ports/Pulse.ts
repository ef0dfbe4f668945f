import { Context, type Duration, Effect, Latch, Option } from "effect"

/** The kinds of work that a loop of any process may sleep for. */
export const topics = ["queue", "log", "commands", "receipts", "jobs"] as const
export type Topic = (typeof topics)[number]

export interface Listener {
  /** Returns at the next wake of its topic, at once if one came since the last return, or after `atMost`. Answers whether one came. */
  readonly wait: (atMost: Duration.Input) => Effect.Effect<boolean>
}

/**
 * Wakes sleeping loops, so that none has to poll.
 *
 * - `wake` follows a commit that makes work of a topic: it wakes listeners of this process at once, of others soon.
 * - `ring` wakes this process only: the heartbeat calls it for each topic of which something is due.
 * - A wake may be lost: the heartbeat finds the work within two seconds.
 */
export interface PulseService {
  readonly wake: (...topics: ReadonlyArray<Topic>) => Effect.Effect<void>
  readonly ring: (topic: Topic) => void
  readonly listener: (topic: Topic) => Listener
}

/** The listeners of one process. */
export const makeListeners = (): Pick<PulseService, "ring" | "listener"> => {
  const latches = new Map(topics.map((topic) => [topic, new Set<Latch.Latch>()]))
  return {
    ring: (topic) => {
      for (const latch of latches.get(topic)!) latch.openUnsafe()
    },
    listener: (topic) => {
      const latch = Latch.makeUnsafe(false)
      latches.get(topic)!.add(latch)
      const close = Effect.sync(() => void latch.closeUnsafe())
      return {
        wait: (atMost) => Effect.tap(Effect.map(Effect.timeoutOption(latch.await, atMost), Option.isSome), close)
      }
    }
  }
}

/** The default reaches no other process. */
export const Pulse = Context.Reference<PulseService>("posthaste/application/ports/Pulse", {
  defaultValue: () => {
    const { ring, listener } = makeListeners()
    return {
      ring,
      listener,
      wake: (...woken) =>
        Effect.sync(() => {
          for (const topic of woken) ring(topic)
        })
    }
  }
})
