/**
 * The one way to change anything that is stored as facts: load the state, decide, append on top of the loaded version,
 * and begin again when another writer was first. No two decisions are made on one state. The caller brings loading,
 * decision, append and patience.
 */
import { Effect, Schedule, Schema } from "effect"
import type { MessageId } from "../domain/ids.ts"
import type { RecordedFact } from "../domain/recorded.ts"
import { CommandedBy } from "./commandedBy.ts"
import { type Append, EventStore, type Stream, type StreamVersion } from "./ports/EventStore.ts"
import type { StoreUnavailable } from "./ports/errors.ts"
import { type JournalFact, type JournalName, Journals } from "./ports/Journals.ts"

/** Another writer was first each time. Nothing was written; asking again will help. */
export class Overtaken extends Schema.TaggedError<Overtaken>()("Overtaken", {}) {}

/** The append, or null for none, and the command's answer once it is stored. */
export interface Decision<Entry, Answer> {
  readonly entry: Entry | null
  readonly answer: Answer
}

export interface Command<State, Entry, Result extends Typed, Answer, E1, R1, E2, R2, E3, R3> {
  readonly known?: State | null
  readonly load: Effect.Effect<State, E1, R1>
  readonly decide: (state: State) => Effect.Effect<Decision<Entry, Answer>, E2, R2>
  /** `Appended` ends the command, `VersionConflict` begins it again, and any other result is its answer. */
  readonly append: (entry: Entry) => Effect.Effect<Result, E3, R3>
}

interface Typed {
  readonly type: string
}

type Refusal<Result> = Exclude<Result, { readonly type: "Appended" | "VersionConflict" }>

export interface Patience {
  readonly tries: number
  /**
   * Repeats the command while the store does not answer, from the loading on: the append may have been stored. Absent:
   * the caller gets `StoreUnavailable`.
   */
  readonly unavailable?: { readonly schedule: Schedule.Schedule<unknown>; readonly while: () => boolean }
}

export const storePauses = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("2 seconds")])

export const command = <State, Entry, Result extends Typed, Answer, E1, R1, E2, R2, E3, R3>(
  steps: Command<State, Entry, Result, Answer, E1, R1, E2, R2, E3, R3>,
  { tries, unavailable }: Patience
): Effect.Effect<Answer | Refusal<Result>, E1 | E2 | E3 | Overtaken, R1 | R2 | R3> => {
  const first = Effect.suspend(() => untilAppended(steps, steps.known ?? null, tries))
  // Every attempt of every message comes by here: the schedule is only set up once it is needed.
  return unavailable === undefined
    ? first
    : Effect.catch(first, (error) =>
        isUnavailable(error) ? whileUnavailable(untilAppended(steps, null, tries), unavailable) : Effect.fail(error)
      )
}

export const whileUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { schedule, while: goesOn }: NonNullable<Patience["unavailable"]>
): Effect.Effect<A, E, R> => Effect.retry(effect, { schedule, while: (error) => isUnavailable(error) && goesOn() })

const isUnavailable = (error: unknown): boolean => (error as StoreUnavailable)._tag === "StoreUnavailable"

/**
 * No generator, and no step of the fiber for a decision that is there at once: with them a delivery costs a tenth more.
 */
const untilAppended = <State, Entry, Result extends Typed, Answer, E1, R1, E2, R2, E3, R3>(
  steps: Command<State, Entry, Result, Answer, E1, R1, E2, R2, E3, R3>,
  known: State | null,
  left: number
): Effect.Effect<Answer | Refusal<Result>, E1 | E2 | E3 | Overtaken, R1 | R2 | R3> => {
  if (left <= 0) return Effect.fail(new Overtaken())
  const decision = known === null ? Effect.flatMap(steps.load, steps.decide) : steps.decide(known)
  return Effect.flatMapEager(decision, ({ entry, answer }) =>
    entry === null
      ? Effect.succeed(answer)
      : Effect.flatMap(steps.append(entry), (result) => {
          if (result.type === "Appended") return Effect.succeed(answer)
          if (result.type !== "VersionConflict") return Effect.succeed(result as Refusal<Result>)
          return untilAppended(steps, null, left - 1)
        })
  )
}

export const appendToMessage = (entry: Append) =>
  Effect.flatMap(EventStore, (store) => Effect.map(store.append([entry]), (results) => results[0]!))

/** For an entry without fence, gate and key: only its version can refuse it. */
export const appendFreely = (entry: Append) =>
  Effect.map(appendToMessage(entry), ({ type }) => {
    if (type === "Appended" || type === "VersionConflict") return { type }
    throw new Error(`an entry without conditions was answered ${type}`)
  })

interface JournalEntry {
  readonly expected: StreamVersion
  readonly facts: ReadonlyArray<RecordedFact>
  readonly at: JournalFact["at"]
}

export const appendToJournal =
  (journal: JournalName) =>
  ({ expected, facts, at }: JournalEntry) =>
    Effect.gen(function* () {
      const type = yield* (yield* Journals).append(journal, expected, facts, at, yield* CommandedBy)
      return { type }
    })

/**
 * A command to several messages, loaded and appended together, each decided alone. Answers the decisions' answers in
 * any order, without those of entries that were refused for another reason than their version. A message that can't be
 * processed goes to `leftOut`, and the others go on.
 */
export const commandMessages = Effect.fnUntraced(function* <
  Item extends { readonly messageId: MessageId },
  Answer,
  E,
  R
>(
  items: ReadonlyArray<Item>,
  decide: (item: Item, stream: Stream | undefined) => Effect.Effect<Decision<Append, Answer>, E, R>,
  patience: Patience,
  leftOut: (item: Item, defect: unknown) => Effect.Effect<void> = ({ messageId }, defect) =>
    Effect.logError(`message ${messageId} is left out: what is stored of it can't be processed`, defect)
) {
  const store = yield* EventStore
  const answers: Array<Answer> = []
  let open = items
  const settle = command(
    {
      load: Effect.suspend(() => store.loadMany(open.map(({ messageId }) => messageId))),
      decide: Effect.fnUntraced(function* (streams: ReadonlyMap<MessageId, Stream>) {
        const decided = yield* Effect.forEach(open, (item) =>
          Effect.map(decide(item, streams.get(item.messageId)), (decision) => ({ item, ...decision }))
        )
        for (const { entry, answer } of decided) if (entry === null) answers.push(answer)
        const writes = decided.filter(({ entry }) => entry !== null)
        open = writes.map(({ item }) => item)
        return { entry: writes.length === 0 ? null : writes, answer: null }
      }),
      append: Effect.fnUntraced(function* (writes: ReadonlyArray<Decision<Append, Answer> & { readonly item: Item }>) {
        const results = yield* store.append(writes.map(({ entry }) => entry!))
        for (const [i, { answer }] of writes.entries()) if (results[i]!.type === "Appended") answers.push(answer)
        open = writes.flatMap(({ item }, i) => (results[i]!.type === "VersionConflict" ? [item] : []))
        return { type: open.length === 0 ? "Appended" : "VersionConflict" } as const
      })
    },
    patience
  )
  /** After a defect: finds the message that causes it. */
  const alone = Effect.fnUntraced(function* (item: Item) {
    open = [item]
    yield* Effect.catchDefect(settle, (defect) => leftOut(item, defect))
  })
  yield* Effect.catchDefect(settle, () => Effect.forEach([...open], alone, { discard: true }))
  return answers
})
