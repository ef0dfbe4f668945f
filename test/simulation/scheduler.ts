/**
 * The order in which things run, drawn by dice. Every fiber of every process puts its next step into one
 * queue, and the next to run is any of them, so each seed is one interleaving of the whole world.
 */
import type { Scheduler } from "effect"
import type { Dice } from "./dice.ts"
import type { Process } from "./process.ts"

export class RunQueue {
  readonly #steps: Array<{ readonly process: Process; readonly run: () => void }> = []
  readonly #dice: Dice

  constructor(dice: Dice) {
    this.#dice = dice
  }

  add(process: Process, run: () => void): void {
    this.#steps.push({ process, run })
  }

  /** Runs one step. False when there is none. */
  runOne(): boolean {
    const steps = this.#steps
    if (steps.length === 0) return false
    const place = steps.length === 1 ? 0 : this.#dice.between(0, steps.length - 1)
    const { process, run } = steps[place]!
    steps[place] = steps.at(-1)!
    steps.pop()
    process.run(run)
    return true
  }
}

/** How one process hands its fibers' steps to the world. A fiber is set aside after `opsMax` operations at a stretch. */
export const schedulerOf = (process: Process, opsMax: number): Scheduler.Scheduler => ({
  executionMode: "async",
  shouldYield: (fiber) => fiber.currentOpCount >= opsMax,
  makeDispatcher: () => ({
    scheduleTask: (task) => process.schedule(task),
    flush: () => {}
  })
})
