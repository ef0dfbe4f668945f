/**
 * Requests about many things at once: batches of messages and of events. A batch may hold 8 MiB and a thousand entries, and to do all of
 * it at once would keep everybody else waiting for a good part of a second. So it is done in pieces, each in its org's turn: the entries
 * are found in the bytes, parsed, decoded, accepted and answered so many at a time. An org has few large ones in memory; the next wait
 * unread.
 *
 * The body is judged as a whole before anything of it is accepted: it is JSON, its list is of the right length, and the org may ask
 * for so much. From there on each entry is judged on its own.
 */
import { Effect, Result } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Fault } from "../../../application/errors.ts"
import { inPieces } from "../../../application/pieces.ts"
import type { OrgId } from "../../../domain/ids.ts"
import type { Decode } from "../../api/decoding.ts"
import { findEntries, type List } from "../../api/entries.ts"
import { DEPTH_MAX, type JsonText, jsonOf, SIZE_MAX, textOf } from "../../api/jsonText.ts"
import { BATCH_MAX } from "../../api/messageRequests.ts"
import { ActingOrg } from "./auth.ts"
import { atPaceOf, inTurnsOf, pieceOf } from "./door.ts"
import { invalidFields, invalidRequest, type Problem, tooLarge } from "./problem.ts"
import { isLarge, limits, useJsonBytes } from "./requestBody.ts"
import { PIECE } from "./turns.ts"
import { asLargeBatch } from "./underWay.ts"

/** Accepted together: more cost each of them less, and keep others waiting for longer. */
const ACCEPTED_AT_ONCE = 100
/** As many bytes of these, unless one alone has more. */
const BYTES_ACCEPTED = 256 * 1024
/** Of what is not in a list. There is hardly anything to say there. */
const OUTSIDE_MAX = 64 * 1024

interface Answered {
  readonly status: number
  readonly problem?: Problem | undefined
}

interface Kind<Asked, Outcome, E1, R1, E2, R2, R3> {
  /** Of its list. */
  readonly name: string
  /** Of the body, with a list of nothing. */
  readonly decodeBody: Decode<unknown>
  readonly admit: (orgId: OrgId, bytes: number, entries: ReadonlyArray<unknown>) => Effect.Effect<void, E1, R1>
  readonly decode: (entry: JsonText, path: string) => Result.Result<Asked, ReadonlyArray<Fault>>
  /** So many did not decode. */
  readonly undecoded: (count: number) => Effect.Effect<void, never, R3>
  readonly accept: (orgId: OrgId, asked: ReadonlyArray<Asked>) => Effect.Effect<ReadonlyArray<Outcome>, E2, R2>
  /** `path` is the place of the entry in the request. */
  readonly answerTo: (outcome: Outcome, path: string) => Answered
}

export const answerBatch = <Asked, Outcome, E1, R1, E2, R2, R3>(
  request: HttpServerRequest.HttpServerRequest,
  kind: Kind<Asked, Outcome, E1, R1, E2, R2, R3>
) => {
  const answer = Effect.flatMap(ActingOrg, (orgId) => inTurnsOf(orgId, answerInPieces(request, kind)))
  return isLarge(request) ? asLargeBatch(answer) : answer
}

const answerInPieces = Effect.fnUntraced(function* <Asked, Outcome, E1, R1, E2, R2, R3>(
  request: HttpServerRequest.HttpServerRequest,
  { name, decodeBody, admit, decode, undecoded, accept, answerTo }: Kind<Asked, Outcome, E1, R1, E2, R2, R3>
) {
  const orgId = yield* ActingOrg
  const { entries, bytes } = yield* useJsonBytes(request, limits.batch, orgId, (bytes) =>
    Effect.map(entriesOf(orgId, bytes, name, decodeBody), (entries) => ({ entries, bytes: bytes.length }))
  )
  const values = entries.map((entry) => (Result.isSuccess(entry) ? entry.success.value : null))
  yield* admit(orgId, bytes, values)
  const asked: Array<Result.Result<Asked, Problem>> = []
  yield* inPieces(entries.length, (index) => {
    const entry = entries[index]!
    asked.push(Result.flatMap(entry, (json) => Result.mapError(decode(json, `${name}[${index}]`), invalidFields)))
    return Result.succeed(sizeOf(entry))
  })
  const good = asked.flatMap((one, index) =>
    Result.isSuccess(one) ? [{ asked: one.success, bytes: sizeOf(entries[index]!) }] : []
  )
  if (good.length < asked.length) yield* undecoded(asked.length - good.length)
  const outcomes: Array<Outcome> = []
  for (const together of acceptedTogether(good)) {
    yield* pieceOf(orgId, PIECE)
    outcomes.push(...(yield* atPaceOf(orgId, accept(orgId, together))))
  }
  let next = 0
  const items: Array<string> = []
  yield* inPieces(asked.length, (index) => {
    const one = asked[index]!
    const { problem, ...answered } = Result.isSuccess(one)
      ? answerTo(outcomes[next++]!, `${name}[${index}].`)
      : { status: one.failure.body.status, problem: one.failure }
    const item = JSON.stringify(problem === undefined ? answered : { ...answered, problem: problem.body })
    items.push(item)
    return Result.succeed(item.length)
  })
  return HttpServerResponse.text(`{"items":[${items.join()}]}`, { contentType: "application/json" })
})

const sizeOf = (entry: Result.Result<JsonText, Problem>): number =>
  Result.isSuccess(entry) ? entry.success.text.length : 0

export const acceptedTogether = <Asked>(
  all: ReadonlyArray<{ readonly asked: Asked; readonly bytes: number }>
): ReadonlyArray<ReadonlyArray<Asked>> => {
  const pieces: Array<Array<Asked>> = []
  let bytesLeft = 0
  for (const { asked, bytes } of all) {
    const last = pieces.at(-1)
    if (last === undefined || last.length === ACCEPTED_AT_ONCE || bytes > bytesLeft) {
      pieces.push([asked])
      bytesLeft = BYTES_ACCEPTED - bytes
    } else {
      last.push(asked)
      bytesLeft -= bytes
    }
  }
  return pieces
}

/** The entries of the list `name`. One that is too large to be a request of its own is not parsed. */
const entriesOf = Effect.fnUntraced(function* (
  orgId: OrgId,
  bytes: Uint8Array,
  name: string,
  decodeBody: Decode<unknown>
) {
  const search = findEntries(bytes, { most: BATCH_MAX, outsideMax: OUTSIDE_MAX })
  do yield* pieceOf(orgId, PIECE)
  while (!search.step())
  const found = search.found()
  if (found === "EndsInAList") return yield* invalidRequest("The body is not valid JSON: it ends within a list.")
  if (found === "TooMuchOutside") {
    const most = `at most ${OUTSIDE_MAX} bytes outside of the list ${name}`
    return yield* invalidRequest(`The body must be an object with ${most}.`)
  }
  const outside = Result.flatMap(textOf(found.outside), (text) => jsonOf(text))
  // It is shorter than the body, so no place in it means anything.
  const { value } = yield* Effect.fromResult(
    found.lists.length === 0
      ? outside
      : Result.mapError(outside, () => invalidRequest("The body is not valid JSON outside of its entries."))
  )
  const list = listIn(value, name, found.lists)
  const body = list === null ? value : { ...(value as object), [name]: ofLength(list.count) }
  yield* Effect.fromResult(Result.mapError(decodeBody(body), invalidFields))
  // Decoding has shown that it is there.
  const { places, count } = list!
  const entries: Array<Result.Result<JsonText, Problem>> = []
  yield* inPieces(count, (index) => {
    const part = bytes.subarray(places[2 * index], places[2 * index + 1])
    const isLarge = part.length > SIZE_MAX
    const entry = isLarge
      ? Result.fail(tooLarge(SIZE_MAX))
      : Result.flatMap(textOf(part), (text) => jsonOf(text, `${name}[${index}]`, DEPTH_MAX - 2))
    entries.push(entry)
    // What is not JSON is wrong as a whole.
    return isLarge ? Result.succeed(0) : Result.map(entry, () => part.length)
  })
  return entries
})

/** In place of each list stands another that holds its number. */
const listIn = (value: unknown, name: string, lists: ReadonlyArray<List>): List | null => {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return null
  const member = (value as Readonly<Record<string, unknown>>)[name]
  return Array.isArray(member) ? (lists[member[0] as number] ?? null) : null
}

/** A list that takes no memory for what is too much. */
const ofLength = (count: number): ReadonlyArray<unknown> =>
  count > BATCH_MAX ? Object.assign([], { length: count }) : new Array<unknown>(count).fill(null)
