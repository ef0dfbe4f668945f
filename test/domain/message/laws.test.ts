/** What holds for every message, whatever is asked of it and in whatever order. */
import { DateTime } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { transition } from "xstate"
import { attemptsMaxOf, RETRY_AFTER_MAX_MS, retryWaitMs } from "../../../src/domain/delivery/retry.ts"
import { can, decide, evolve, initial, replay } from "../../../src/domain/message/decider.ts"
import { type FactOf, type MessageFact, recorded } from "../../../src/domain/message/facts.ts"
import { messageMachine, statuses } from "../../../src/domain/message/machine.ts"
import { attentionAt, type QueueChange, queueChange } from "../../../src/domain/message/queueChange.ts"
import { type Message, step } from "../../../src/domain/message/transitions.ts"
import { propertySeed } from "../../propertySeed.ts"
import { anyFact, anyLife, type Life, type Turn } from "../arbitraries.ts"
import * as the from "./samples.ts"

/** The same for every law: to make a life takes far longer than to judge it. */
const drawn = { seed: propertySeed, numRuns: 1_000 }
let lives: ReadonlyArray<Life> | null = null

const holds = (law: (life: Life) => void) => {
  lives ??= fc.sample(anyLife, drawn)
  try {
    lives.forEach(law)
  } catch (error) {
    // Finds the life again, says from which seed it came, and makes it as short as it can be.
    fc.assert(fc.property(anyLife, law), drawn)
    throw error
  }
}

const endings = new Set<MessageFact["type"]>([
  "MessageDelivered",
  "MessageFailed",
  "MessageDeadLettered",
  "MessageCancelled",
  "MessageExpired"
])
const closings = new Set<MessageFact["type"]>([
  "AttemptSucceeded",
  "AttemptFailed",
  "AttemptDeferred",
  "AttemptAbandoned"
])
const isEnding = (fact: MessageFact) => endings.has(fact.type)
const isStart = (fact: MessageFact): fact is FactOf<"AttemptStarted"> => fact.type === "AttemptStarted"

/** A history cut where a replay opens the next epoch. */
const epochsOf = (history: ReadonlyArray<MessageFact>): ReadonlyArray<ReadonlyArray<MessageFact>> =>
  history.reduce<Array<Array<MessageFact>>>(
    (epochs, fact) => {
      if (fact.type === "MessageReplayed") epochs.push([])
      epochs.at(-1)!.push(fact)
      return epochs
    },
    [[]]
  )

/** The message after each fact of its history, the first before any. */
const messagesOf = (history: ReadonlyArray<MessageFact>): ReadonlyArray<Message> => {
  const messages = [initial]
  for (const fact of history) messages.push(evolve(messages.at(-1)!, fact))
  return messages
}

describe("the lives that are tried", () => {
  it("reach every status, every fact and a third epoch", () => {
    const lives = fc.sample(anyLife, { seed: 17, numRuns: 500 })
    const reached = new Set(lives.flatMap(({ turns }) => turns.map(({ after }) => after.status)))
    expect([...reached].toSorted()).toEqual([...statuses].toSorted())
    const written = new Set(lives.flatMap(({ history }) => history.map(({ type }) => type)))
    const types = new Set(Object.keys(recorded).map((name) => name.split("@")[0]))
    expect([...written].toSorted()).toEqual([...types].toSorted())
    expect(Math.max(...lives.map(({ message }) => message.progress.epoch))).toBeGreaterThanOrEqual(3)
    expect(lives.some(({ turns }) => turns.some(({ after }) => after.progress.phase === "unresolved"))).toBe(true)
    expect(
      lives.some(({ history }) => history.some((fact) => fact.type === "ReceiptRecorded" && fact.contradicts))
    ).toBe(true)
  })
})

describe("a history", () => {
  it("replays to the message it was decided from", () => {
    holds(({ history, message }) => {
      expect(replay(history)).toEqual(message)
    })
  })

  it("replays to the same message from any point in between", () => {
    fc.assert(
      fc.property(anyLife, fc.nat(), ({ history, message }, cut) => {
        const at = cut % history.length
        expect(history.slice(at).reduce(evolve, replay(history.slice(0, at)))).toEqual(message)
      })
    )
  })

  it("has at most one ending in each epoch", () => {
    holds(({ history }) => {
      for (const epoch of epochsOf(history)) expect(epoch.filter(isEnding).length).toBeLessThanOrEqual(1)
    })
  })

  it("has an ending in every epoch that was followed by another, and a bad one", () => {
    holds(({ history }) => {
      for (const epoch of epochsOf(history).slice(0, -1)) {
        expect(["MessageFailed", "MessageDeadLettered"]).toContain(epoch.find(isEnding)?.type)
      }
    })
  })

  it("adds nothing but receipts, an erasure and a dismissal after an ending, until a replay", () => {
    holds(({ history }) => {
      for (const epoch of epochsOf(history)) {
        const end = epoch.findIndex(isEnding)
        const after = end < 0 ? [] : epoch.slice(end + 1)
        const kept = ["ReceiptRecorded", "MessageBodyErased", "MessageDismissed"]
        expect(after.filter(({ type }) => !kept.includes(type))).toEqual([])
      }
    })
  })

  it("never attempts more often than the policy allows in one epoch", () => {
    holds(({ history }) => {
      const opening = history[0] as FactOf<"MessageQueued">
      for (const epoch of epochsOf(history)) {
        const deferrals = epoch.filter(({ type }) => type === "AttemptDeferred")
        const counted = epoch.filter(isStart).length - deferrals.length
        expect(counted).toBeLessThanOrEqual(attemptsMaxOf(opening.retry))
      }
    })
  })

  it("numbers the attempts of each epoch 1, 2, 3 …, and gives the number of a deferred one to the next", () => {
    holds(({ history }) => {
      epochsOf(history).forEach((epoch, index) => {
        let next = 1
        for (const fact of epoch) {
          if (fact.type === "AttemptDeferred") next--
          if (!isStart(fact)) continue
          expect(fact).toMatchObject({ epoch: index + 1, attempt: next })
          next++
        }
      })
    })
  })

  it("closes each attempt exactly once before the next starts or the message ends, unless a receipt knows better", () => {
    holds(({ history }) => {
      for (const epoch of epochsOf(history)) {
        let open: number | null = null
        let proven = false
        for (const fact of epoch) {
          proven ||= fact.type === "ReceiptRecorded" && fact.receipt !== "failed"
          if (isStart(fact)) {
            expect(open).toBeNull()
            open = fact.attempt
          } else if (fact.type === "AttemptSucceeded" && open === null) {
            expect(proven).toBe(true)
          } else if (closings.has(fact.type)) {
            expect((fact as FactOf<"AttemptSucceeded">).attempt).toBe(open)
            open = null
          } else if (isEnding(fact)) {
            expect(open).toBeNull()
          }
        }
      }
    })
  })

  it("tells of the next attempt whenever one failed and the message goes on", () => {
    holds(({ history }) => {
      history.forEach((fact, index) => {
        if (fact.type !== "AttemptFailed" && fact.type !== "AttemptAbandoned") return
        const next = history[index + 1]
        if (fact.retryAt === null) expect(["MessageFailed", "MessageDeadLettered"]).toContain(next?.type)
        else {
          expect(next?.type).not.toBe("MessageFailed")
          // It may still grow too old while it waits.
          if (next?.type === "MessageDeadLettered") expect(next.reason).toBe("too old")
        }
      })
    })
  })
})

describe("a decision", () => {
  it("proposes only what the law allows, fact by fact", () => {
    holds(({ turns }) => {
      for (const { before, facts } of turns) {
        let message = before
        for (const fact of facts) {
          expect(can(message, fact)).toBe(true)
          message = evolve(message, fact)
        }
      }
    })
  })

  it("is the same each time it is asked for", () => {
    holds(({ turns }) => {
      for (const { before, command } of turns) expect(decide(before, command)).toEqual(decide(before, command))
    })
  })

  it("leaves the message either going on or ended, never in between", () => {
    holds(({ turns }) => {
      for (const { after } of turns) {
        if (after.status === "SENDING") expect(["open", "unresolved"]).toContain(after.progress.phase)
        if (after.status === "QUEUED") expect(after.progress.attempt).toBeLessThan(after.progress.attemptsMax)
      }
    })
  })

  it("never retries earlier than the policy and the far side allow, nor later than their bounds", () => {
    holds(({ turns }) => {
      for (const { command, before, facts, now } of turns) {
        const [fact] = facts
        if (fact?.type !== "AttemptFailed" && fact?.type !== "AttemptAbandoned") continue
        if (fact.retryAt === null) continue
        const { retry } = before.progress
        const wait = DateTime.toEpochMillis(fact.retryAt) - DateTime.toEpochMillis(now)
        const asked =
          command.type === "SettleAttempt" && command.outcome.type === "Unreachable"
            ? command.outcome.retryAfterMs
            : null
        expect(wait).toBeGreaterThanOrEqual(Math.min(asked ?? 0, RETRY_AFTER_MAX_MS))
        expect(wait).toBeGreaterThanOrEqual(retryWaitMs(retry, fact.attempt, 0))
        expect(wait).toBeLessThanOrEqual(Math.max(retryWaitMs(retry, fact.attempt, 1), asked ?? 0))
      }
    })
  })

  it("defers without counting: whatever is burnt, it is as it was before the start", () => {
    let deferrals = 0
    holds(({ turns }) => {
      for (const { before, after, facts, now } of turns) {
        const [fact] = facts
        if (fact?.type !== "AttemptDeferred") continue
        deferrals++
        expect(after.status).toBe("QUEUED")
        expect(after.progress.attempt).toBe(before.progress.attempt - 1)
        const { openedAt, retry } = after.progress
        const age = DateTime.toEpochMillis(fact.dueAt) - DateTime.toEpochMillis(openedAt!)
        expect(age).toBeLessThanOrEqual(retry.ageMaxMs ?? age)
        expect(DateTime.isGreaterThanOrEqualTo(fact.dueAt, now)).toBe(true)
      }
    })
    expect(deferrals).toBeGreaterThan(20)
  })

  it("never sends a doubtful attempt again before it is known that it was not taken", () => {
    holds(({ turns }) => {
      for (const { before, after, command } of turns) {
        if (before.progress.phase !== "unresolved" || after.status !== "QUEUED") continue
        expect(command).toMatchObject({ type: "SettleAttempt", outcome: { type: "Unreachable" } })
      }
    })
  })
})

/** Facts that fit a message, and the same facts one attempt, one epoch or one field beside. */
const neighboursOf = ({ attempt, epoch }: Message["progress"]): ReadonlyArray<MessageFact> => [
  the.queued(),
  ...[attempt - 1, attempt, attempt + 1].flatMap((number) => [
    the.started(number, epoch),
    the.started(number, epoch + 1),
    the.succeeded(number),
    the.failed(number, the.noon),
    the.failed(number, null),
    the.deferred(number, the.noon),
    the.abandoned(number, the.noon),
    the.abandoned(number, null),
    the.unresolved(number)
  ]),
  ...(["response", "receipt"] as const).flatMap((how) => [the.delivered(how), the.refusedForGood(how)]),
  the.deadLettered(),
  the.cancelled,
  the.expired(the.noon),
  the.replayed(epoch),
  the.replayed(epoch + 1),
  ...(["sent", "delivered", "read", "failed"] as const).map((receipt) => the.received(receipt))
]

describe("the table and the machine it is made from", () => {
  const judge = (message: Message, fact: MessageFact): Message | null => {
    const snapshot = messageMachine.resolveState({
      value: message.status,
      context: message.progress
    } as Parameters<typeof messageMachine.resolveState>[0])
    if (!snapshot.can(fact)) return null
    const [next] = transition(messageMachine, snapshot, fact)
    return { status: next.value as Message["status"], progress: next.context }
  }

  it("judge every fact alike in every state that can be reached", () => {
    let allowed = 0
    let forbidden = 0
    fc.assert(
      fc.property(anyLife, fc.array(anyFact, { minLength: 5, maxLength: 10 }), ({ history }, strangers) => {
        for (const message of messagesOf(history)) {
          for (const fact of strangers) {
            const next = step(message, fact)
            expect(next).toEqual(judge(message, fact))
            if (next === null) forbidden++
            else allowed++
          }
        }
      }),
      { numRuns: 200 }
    )
    // Neither answer may be the only one heard.
    expect(Math.min(allowed, forbidden)).toBeGreaterThan(200)
  })

  it("judge every fact alike that is right or just beside what is right", () => {
    const judged = new Set<string>()
    for (const { history } of fc.sample(anyLife, { seed: 17, numRuns: 1_000 })) {
      for (const message of messagesOf(history)) {
        const { status, progress } = message
        const { phase, attempt, attemptsMax, epoch, taken, receiptOutcome, receipts, doubts } = progress
        const kind = [
          status,
          phase,
          attempt,
          attemptsMax,
          epoch > 1,
          taken,
          receiptOutcome,
          receipts.length,
          doubts
        ].join()
        if (judged.has(kind)) continue
        judged.add(kind)
        for (const fact of neighboursOf(progress)) expect(step(message, fact), kind).toEqual(judge(message, fact))
      }
    }
    expect(judged.size).toBeGreaterThan(200)
  })

  it("make the same message of every history, fact by fact", () => {
    holds(({ history }) => {
      const messages = messagesOf(history)
      history.forEach((fact, index) => {
        expect(judge(messages[index]!, fact)).toEqual(messages[index + 1])
      })
    })
  })
})

/**
 * The queue as it should be: one row for a message that waits, none for any other. Workers, and whoever hurries it, act on a
 * message only after they claimed it, which takes its row out; everybody else leaves the row where it is.
 */
describe("the queue", () => {
  type Row = Extract<QueueChange, { readonly type: "Wait" }>
  const claims: ReadonlyArray<string> = ["StartAttempt", "SettleAttempt", "AbandonAttempt", "HurryMessage"]
  const isWorker = ({ command }: Turn) => claims.includes(command.type)

  const changesOf = ({ before, facts }: Turn) => {
    let message = before
    return facts.flatMap((fact) => {
      const after = evolve(message, fact)
      const change = queueChange(message, fact, after)
      message = after
      return change === null ? [] : [change]
    })
  }

  const afterEachTurn = (check: (row: Row | null, turn: Turn) => void) =>
    holds(({ turns }) => {
      let row: Row | null = null
      for (const turn of turns) {
        const claimed: Row | null = row
        if (turn.facts.length > 0 && isWorker(turn)) row = null
        // An append carries the change of the last fact that has one.
        const change = changesOf(turn).at(-1)
        if (change?.type === "Leave") {
          expect(change.lane).toBe(claimed?.lane)
          expect(change.dueAt).toEqual(claimed?.dueAt)
          row = null
        } else if (change?.type === "Wait") {
          expect(row).toBeNull()
          row = change
        }
        check(row, turn)
      }
    })

  it("holds exactly the messages that are queued or in doubt", () => {
    afterEachTurn((row, { after: { status, progress } }) => {
      const waits = status === "QUEUED" || (status === "SENDING" && progress.phase === "unresolved")
      expect(row !== null).toBe(waits)
    })
  })

  it("holds a message for the time it wants attention, with the attempts it has closed", () => {
    afterEachTurn((row, { after }) => {
      if (row === null) return
      const { attempt, phase } = after.progress
      expect(row.dueAt).toEqual(attentionAt(after))
      expect(row).toMatchObject({
        lane: after.progress.destination,
        epoch: after.progress.epoch,
        attempt: phase === "unresolved" ? attempt - 1 : attempt
      })
    })
  })

  it("hands a message out no later than it expires or is due", () => {
    afterEachTurn((row, { after: { status, progress } }) => {
      if (row === null || status !== "QUEUED") return
      const times = [progress.dueAt, progress.expiresAt].filter((time) => time !== null).map(DateTime.toEpochMillis)
      expect(DateTime.toEpochMillis(row.dueAt)).toBe(Math.min(...times))
    })
  })
})
