/** `given(facts).when(command).then(facts)`: one rule of the law, read aloud. */
import { Result } from "effect"
import { expect } from "vitest"
import { decide, type MessageCommand, replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import type { Status } from "../../../src/domain/message/transitions.ts"

/** `then` also replays what was decided on top of what was given: a decision that the law forbids fails here. */
export const given = (...history: ReadonlyArray<MessageFact>) => ({
  when: (command: MessageCommand) => {
    const decision = decide(replay(history), command)
    return {
      // biome-ignore lint/suspicious/noThenProperty: a rule is read aloud, never awaited.
      then: (...facts: ReadonlyArray<MessageFact>) => {
        expect(decision).toEqual(Result.succeed(facts))
        const { status } = replay([...history, ...facts])
        return { in: (expected: Status) => expect(status).toBe(expected) }
      },
      thenRejectedIn: (status: Status) =>
        expect(Result.isFailure(decision) && decision.failure).toMatchObject({
          _tag: "CommandRejected",
          command: command.type,
          status
        })
    }
  }
})
