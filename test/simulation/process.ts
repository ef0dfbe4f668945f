/**
 * One simulated operating-system process: fibers that can be frozen, or killed so that nothing of them ever
 * runs again. A kill is not an interruption: no finalizer runs, no answer arrives, no timer fires.
 */
import { Clock, Context, Effect, type Fiber, Logger, Random, References, Scheduler } from "effect"
import { processClock, type Timeline } from "./clock.ts"
import type { Dice } from "./dice.ts"
import { type RunQueue, schedulerOf } from "./scheduler.ts"

export interface Machinery {
  readonly timeline: Timeline
  readonly runQueue: RunQueue
  readonly dice: Dice
  readonly opsMax: number
  /** Called with whatever a process logs as an error. */
  readonly onError: (process: Process, message: string) => void
}

const text = (message: unknown, cause: unknown) =>
  [message, cause]
    .flat()
    .map((part) => (part instanceof Error ? part.stack : typeof part === "string" ? part : String(part)))
    .join(" ")

export class Process {
  readonly name: string
  readonly context: Context.Context<never>
  /** Milliseconds that this process's wall clock is ahead of the true time. */
  wallOffset = 0
  alive = true
  /** It was asked to stop and may give up what it holds. */
  stopping = false
  /** Until when the last fault that hit this process can be felt; a process that feels none has no excuse. */
  disturbedUntil = -Infinity
  #frozen = false
  #held: Array<() => void> = []
  readonly #machinery: Machinery

  constructor(name: string, machinery: Machinery) {
    this.name = name
    this.#machinery = machinery
    const { timeline, dice, opsMax, onError } = machinery
    const reportErrors = Logger.make<unknown, void>(({ message, logLevel, cause }) => {
      if (logLevel === "Error" || logLevel === "Fatal") onError(this, text(message, cause))
    })
    this.context = Context.empty().pipe(
      Context.add(Scheduler.Scheduler, schedulerOf(this, opsMax)),
      Context.add(Clock.Clock, processClock(timeline, this)),
      Context.add(Random.Random, {
        nextDoubleUnsafe: dice.next,
        nextIntUnsafe: () => Math.floor((dice.next() - 0.5) * 2 * Number.MAX_SAFE_INTEGER)
      }),
      Context.add(References.CurrentLoggers, new Set([reportErrors])),
      Context.add(References.TracerEnabled, false)
    )
  }

  schedule(step: () => void): void {
    if (this.alive) this.#machinery.runQueue.add(this, step)
  }

  run(step: () => void): void {
    if (!this.alive) return
    if (this.#frozen) this.#held.push(step)
    else step()
  }

  /** Starts a fiber; what comes of it is told while the process lives. */
  start<A, E, R>(effect: Effect.Effect<A, E, R>, services: Context.Context<R>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(Context.merge(services, this.context))(effect)
  }

  freeze(millis: number): void {
    if (this.#frozen || !this.alive) return
    this.#frozen = true
    this.#machinery.timeline.after(millis, () => this.thaw())
  }

  thaw(): void {
    this.#frozen = false
    const held = this.#held
    this.#held = []
    for (const step of held) this.schedule(step)
  }

  kill(): void {
    this.alive = false
    this.#held = []
  }
}
