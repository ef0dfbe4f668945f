/** What the machines of the domain allow, arrow by arrow: over all worlds each must be taken. */
import { circuitMachine } from "../../src/domain/circuit/machine.ts"
import { messageMachine } from "../../src/domain/message/machine.ts"
import { replayMachine } from "../../src/domain/replay/machine.ts"

interface Arrow {
  readonly target?: ReadonlyArray<{ readonly key: string }> | undefined
}

interface Machine {
  readonly states: Readonly<Record<string, { readonly transitions: ReadonlyMap<string, ReadonlyArray<Arrow>> }>>
}

const arrowsOf = (kind: string, { states }: Machine): ReadonlyArray<string> => {
  const arrows = Object.entries(states).flatMap(([state, { transitions }]) =>
    [...transitions].flatMap(([fact, definitions]) =>
      definitions.map(({ target }) => `${kind} ${state} × ${fact} → ${target?.[0]?.key ?? state}`)
    )
  )
  return [...new Set(arrows)]
}

export const messageArrows = arrowsOf("message", messageMachine)
export const circuitArrows = arrowsOf("circuit", circuitMachine)
export const replayArrows = arrowsOf("replay", replayMachine)
