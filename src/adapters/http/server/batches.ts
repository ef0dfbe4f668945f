/**
 * Batches of messages and events: at most 1 MiB and 1,000 entries. The body is judged as a whole first (JSON, length of
 * its list, admission of the org); then each entry on its own, 100 at a time, so that other requests are answered in
 * between.
 */
import { Array as Arr, Effect, Result } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Fault } from "../../../application/ports/errors.ts"
import type { OrgId } from "../../../domain/ids.ts"
import type { Decode } from "../../api/decoding.ts"
import { type JsonText, SIZE_MAX } from "../../api/jsonText.ts"
import { rawItems } from "../../api/rawJson.ts"
import { ActingOrg } from "./auth.ts"
import { invalidFields, type Problem, tooLarge } from "./problem.ts"
import { decoded, limits, readJson } from "./requestBody.ts"

/** A larger part costs less an entry and keeps other requests waiting longer. */
const TOGETHER = 100

interface Answered {
  readonly status: number
  readonly problem?: Problem | undefined
}

interface Kind<Asked, Outcome, E1, R1, E2, R2, R3> {
  /** The name of the list in the body. */
  readonly name: string
  readonly decodeBody: Decode<{ readonly [name: string]: ReadonlyArray<unknown> }>
  readonly admit: (orgId: OrgId, bytes: number, entries: ReadonlyArray<unknown>) => Effect.Effect<void, E1, R1>
  readonly decode: (entry: JsonText, path: string) => Result.Result<Asked, ReadonlyArray<Fault>>
  /** Counts entries that did not decode. */
  readonly undecoded: (count: number) => Effect.Effect<void, never, R3>
  readonly accept: (orgId: OrgId, asked: ReadonlyArray<Asked>) => Effect.Effect<ReadonlyArray<Outcome>, E2, R2>
  /** `path`: the entry's place in the request. */
  readonly answerTo: (outcome: Outcome, path: string) => Answered
}

export const answerBatch = Effect.fnUntraced(function* <Asked, Outcome, E1, R1, E2, R2, R3>(
  request: HttpServerRequest.HttpServerRequest,
  { name, decodeBody, admit, decode, undecoded, accept, answerTo }: Kind<Asked, Outcome, E1, R1, E2, R2, R3>
) {
  const orgId = yield* ActingOrg
  const json = yield* readJson(request, limits.batch)
  const values = (yield* decoded(decodeBody, json))[name]!
  yield* admit(orgId, json.text.length, values)
  const texts = rawItems(json.text, name)
  const items: Array<string> = []
  for (const some of Arr.chunksOf(values, TOGETHER)) {
    const first = items.length
    const asked = some.map((value, n) => {
      const text = texts[first + n]!
      return Buffer.byteLength(text) > SIZE_MAX
        ? Result.fail(tooLarge(SIZE_MAX))
        : Result.mapError(decode({ text, value }, `${name}[${first + n}]`), invalidFields)
    })
    const good = asked.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
    if (good.length < asked.length) yield* undecoded(asked.length - good.length)
    const outcomes = good.length === 0 ? [] : yield* accept(orgId, good)
    let next = 0
    for (const one of asked) {
      const { problem, ...answered } = Result.isSuccess(one)
        ? answerTo(outcomes[next++]!, `${name}[${items.length}].`)
        : { status: one.failure.body.status, problem: one.failure }
      items.push(JSON.stringify(problem === undefined ? answered : { ...answered, problem: problem.body }))
    }
    yield* Effect.yieldNow
  }
  return HttpServerResponse.text(`{"items":[${items.join()}]}`, { contentType: "application/json" })
})
