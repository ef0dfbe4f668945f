/**
 * The guards and changes of a machine. XState types each by the union of all facts; each of ours is about the one type
 * that its arrow names.
 */
import { assign, type EventObject } from "xstate"

export interface Step<Memory, Fact> {
  readonly context: Memory
  readonly event: Fact
}

type Change<Memory, Fact extends EventObject> = ReturnType<typeof assign<Memory & object, Fact, undefined, Fact, never>>

export const lawOf = <Memory extends object, Fact extends EventObject>() => ({
  guards: <Name extends string>(guards: Readonly<Record<Name, (step: Step<Memory, never>) => boolean>>) =>
    guards as Readonly<Record<Name, (step: Step<Memory, Fact>) => boolean>>,
  changes: <Name extends string>(changes: Readonly<Record<Name, (step: Step<Memory, never>) => Partial<Memory>>>) =>
    Object.fromEntries(
      Object.entries<(step: Step<Memory, never>) => Partial<Memory>>(changes).map(([name, change]) => [
        name,
        assign(change as (step: Step<Memory, Fact>) => Partial<Memory>)
      ])
    ) as unknown as Readonly<Record<Name, Change<Memory, Fact>>>
})
