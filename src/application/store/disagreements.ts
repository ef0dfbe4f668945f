/**
 * The disagreements between the facts of a message and its derived rows: its place in the queue, its view in the list,
 * its body. Data in, data out; verifyStreams.ts looks twice before it reports a violation.
 */
import { Result } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { type Place, placeOf } from "../../domain/message/place.ts"
import { viewOf } from "../../domain/message/view.ts"
import type { Archive } from "../ports/Archive.ts"
import type { DerivedState, ReadyRow } from "../ports/DerivedRows.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { rowOf } from "../ports/MessageViews.ts"
import { type Breach, judgeMessage, type Lawful } from "./laws.ts"

export type Rule =
  | Breach["rule"]
  /** The message waits and has no row in the queue, or it is under way and no worker holds it. */
  | "not-in-queue"
  | "twice-in-queue"
  /** A row of the queue, or a place in a line, that the facts do not explain. */
  | "misplaced"
  | "broken-line"
  | "wrong-view"
  | "wrong-counts"
  | "body-not-erased"
  /** A fact is sealed with a key that is not there, and nobody has erased it. */
  /** A body, an answer or another text is sealed with a data key that is not there. */
  | "no-data-key"
  | "no-stream"
  | "wrong-circuit"
  | "wrong-event"

export interface Violation {
  readonly rule: Rule
  /** The stream, or another thing that the violation is about. */
  readonly stream: string
  readonly version: number | null
  readonly detail: string
}

export interface Judged {
  readonly messageId: MessageId
  readonly facts: ReadonlyArray<LoggedFact>
  readonly lawful: Lawful
  readonly place: Place
}

export const judged = (messageId: MessageId, facts: ReadonlyArray<LoggedFact>, lawful: Lawful): Judged => ({
  messageId,
  facts,
  lawful,
  place: placeOf(lawful.tracked)
})

export type Disagreement = Pick<Violation, "rule" | "version" | "detail">

export const disagreements = (
  message: Judged,
  found: DerivedState,
  order: Archive["Service"]["order"]
): ReadonlyArray<Disagreement> => {
  const { version } = message.facts.at(-1)!
  const said = [queueDisagreement(message, found), viewDisagreement(message, found, order)]
  if (found.hasBody && message.lawful.tracked.message.progress.erased) {
    said.push({ rule: "body-not-erased", detail: "its facts say that its body was erased, and there is one" })
  }
  return said.flatMap((each) => (each === null ? [] : [{ version, ...each }]))
}

export type Said = Pick<Violation, "rule" | "detail"> | null

const queueDisagreement = ({ place }: Judged, { isReady, held, isParked, linePlace }: DerivedState): Said => {
  const places = held + (isReady ? 1 : 0)
  // It is in no place of the queue until it is tried again.
  if (isParked && places === 0 && place.type !== "Out") return null
  if (place.type === "Out") {
    const mayStandDead = place.dead && linePlace?.state === "DEAD"
    return linePlace === null || mayStandDead
      ? null
      : misplaced(`nothing is to be done, and it stands in line ${linePlace.line}`)
  }
  if (place.line === null) {
    if (linePlace !== null) return misplaced(`it has no ordering key, and stands in line ${linePlace.line}`)
  } else {
    if (linePlace === null) return missing(`it has the ordering key ${place.line}, and stands in no line`)
    if (linePlace.line !== place.line || linePlace.lane !== place.lane)
      return misplaced(`it stands in line ${linePlace.line}`)
    if (linePlace.state === "DEAD") return misplaced("it stands dead in its line, and is not")
    if (linePlace.state === "WAITING") {
      if (place.type === "UnderWay") return missing("an attempt is under way, and its line has it waiting")
      return places === 0 ? null : twice("behind another message in its line and in its lane")
    }
  }
  if (place.type === "UnderWay") {
    if (isReady) return twice("an attempt is under way, and it waits in its lane")
    return held === 0 ? missing("an attempt is under way, and no worker holds it") : null
  }
  if (places === 0) return missing("it waits, and is neither in its lane nor in a worker's hands")
  return places === 1 ? null : twice(`it waits once, and was found ${places} times`)
}

export const misplaced = (detail: string): Said => ({ rule: "misplaced", detail })
const missing = (detail: string): Said => ({ rule: "not-in-queue", detail })
export const twice = (detail: string) => ({ rule: "twice-in-queue" as const, detail })

const viewDisagreement = (
  { messageId, facts, lawful }: Judged,
  found: DerivedState,
  order: Archive["Service"]["order"]
): Said => {
  const { view, viewsAt } = found
  const seen = view === null ? 0 : Number((view as { readonly version?: unknown }).version)
  const unseen = facts[seen]
  if (unseen !== undefined && viewsAt !== null && order(unseen.position, viewsAt) <= 0) {
    return wrongView(view === null ? "it is not in the list" : `the list knows it up to version ${seen}`)
  }
  if (view === null) return null
  if (seen > facts.length) return wrongView(`the list knows version ${seen}, and there are ${facts.length}`)
  const difference = differenceOf(rowOf(viewOf(messageId, lawful.history.slice(0, seen))!), view)
  return difference === null ? null : wrongView(difference)
}

const wrongView = (detail: string): Said => ({ rule: "wrong-view", detail })

/** In words; null when fold and row agree. */
export const differenceOf = (fold: unknown, row: unknown): string | null => {
  const text = JSON.stringify(fold)
  if (text === JSON.stringify(row)) return null
  const [one, other] = [JSON.parse(text) as Fields, row as Fields]
  for (const field of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const [folded, listed] = [sorted(one[field]), sorted(other[field])]
    if (folded !== listed) return `${field} is ${folded} by the facts and ${listed} in the row`
  }
  return null
}

type Fields = Readonly<Record<string, unknown>>

const sorted = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each
  )

/** Null when the row is where its facts put it, or when its facts can't be folded, which is reported with them. */
export const strayDetail = (row: ReadyRow, facts: ReadonlyArray<LoggedFact> | undefined): Said => {
  if (facts === undefined) return { rule: "no-stream", detail: "it waits in a lane" }
  const judgement = judgeMessage(facts)
  if (Result.isFailure(judgement)) return null
  const place = placeOf(judgement.success.tracked)
  if (place.type === "Out") return misplaced("nothing is to be done, and it waits in a lane")
  if (place.type === "UnderWay") return twice("an attempt is under way, and it waits in a lane")
  const same =
    place.lane === row.lane &&
    place.version === row.version &&
    place.epoch === row.epoch &&
    place.attempt === row.attempt &&
    place.dueAt.epochMilliseconds === row.dueAt.epochMilliseconds
  return same ? null : misplaced("it waits in its lane otherwise than its facts say")
}
