/**
 * The one way to change anything that is stored as facts: load the state, decide on it, append the decision on top of
 * the loaded version. After another writer was first, load and decide again.
 *
 * - Nothing is written on top of a state that was not loaded (or known): the store refuses every other version.
 * - No two decisions are made on one state, so a late command sees the effect of the earlier one.
 * - How long to go on is the caller's patience, and the caller's only choice.
 *
 * It knows neither messages nor journals: the caller brings the loading, the decision and the append.
 */
import { Effect, Schedule, Schema } from "effect"
import type { MessageId } from "../domain/ids.ts"
import type { RecordedFact } from "../domain/recorded.ts"
import { CommandedBy } from "./commandedBy.ts"
import type { StoreUnavailable } from "./errors.ts"
import { type Append, EventStore, type Stream, type StreamVersion } from "./ports/EventStore.ts"
import { type JournalFact, type JournalName, Journals } from "./ports/Journals.ts"

/** Another writer was first each time. Nothing was written; asking again will help. */
export class Overtaken extends Schema.TaggedError<Overtaken>()("Overtaken", {}) {}

/** What to append, and the command's answer once it is there. Without an entry there is nothing to append. */
export interface Decision<Entry, Answer> {
  readonly entry: Entry | null
  readonly answer: Answer
}

export interface Command<State, Entry, Result extends Typed, Answer, E1, R1, E2, R2, E3, R3> {
  /** The state for the first decision, where the caller has it already. */
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
  /** How many states may be decided on before `Overtaken`. */
  readonly tries: number
  /**
   * Repeats the command while the store does not answer. The append may or may not have been stored, so the state is
   * loaded again. Left out, the caller gets `StoreUnavailable`.
   */
  readonly unavailable?: { readonly schedule: Schedule.Schedule<unknown>; readonly while: () => boolean }
}

/** Pauses between calls to a store that does not answer. */
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

/** Repeats an effect while the store does not answer. */
export const whileUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { schedule, while: goesOn }: NonNullable<Patience["unavailable"]>
): Effect.Effect<A, E, R> => Effect.retry(effect, { schedule, while: (error) => isUnavailable(error) && goesOn() })

const isUnavailable = (error: unknown): boolean => (error as StoreUnavailable)._tag === "StoreUnavailable"

/** No generator, and no step of the fiber for a decision that is there at once: with them a delivery costs a tenth more. */
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

/** The append of a command to one message. */
export const appendToMessage = (entry: Append) =>
  Effect.flatMap(EventStore, (store) => Effect.map(store.append([entry]), (results) => results[0]!))

/** The same for an entry without fence, gate and key: nothing but its version can refuse it. */
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

/** The append of a command to a journal. */
export const appendToJournal =
  (journal: JournalName) =>
  ({ expected, facts, at }: JournalEntry) =>
    Effect.gen(function* () {
      const type = yield* (yield* Journals).append(journal, expected, facts, at, yield* CommandedBy)
      return { type }
    })

/**
 * The same for several messages, which are loaded together and appended to together; each is decided on its own.
 * Answers the decisions' answers, in no promised order. A message whose entry was refused for another reason than its
 * version has none.
 *
 * A message whose stream can't be read, or whose history no law allows, is left out alone: `leftOut` hears of it, and the others
 * go on.
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
  /** One by one, once something was wrong with one of them. */
  const alone = Effect.fnUntraced(function* (item: Item) {
    open = [item]
    yield* Effect.catchDefect(settle, (defect) => leftOut(item, defect))
  })
  yield* Effect.catchDefect(settle, () => Effect.forEach([...open], alone, { discard: true }))
  return answers
})
