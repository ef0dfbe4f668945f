/**
 * Reads and decodes the body of a request. Bytes are counted while they arrive, whether or not the caller announced
 * their number. A body that is not UTF-8, not JSON, nested too deeply or not in the expected shape is refused with the
 * reason and every wrong field.
 */
import { ByteSize, Effect, Result, Schema, SchemaAST, SchemaIssue } from "effect"
import { type Headers, HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import type { Fault } from "../../../application/errors.ts"
import { Reason } from "./fields.ts"
import { invalidFields, invalidRequest, type Problem, tooLarge, unsupportedMediaType } from "./problem.ts"
import { isDeeperThan } from "./rawJson.ts"

export const limits = {
  single: 256 * 1024,
  batch: 8 * 1024 * 1024,
  /** Meta sends up to 3 MB at once. */
  notice: 4 * 1024 * 1024,
  /** Far deeper than people write, far less deep than what breaks a receiver's parser. */
  depth: 100
} as const

export interface JsonText {
  readonly text: string
  readonly value: unknown
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

export const readJson = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number
): Effect.fn.Return<JsonText, Problem> {
  const text = yield* readText(request, limitBytes)
  if (isDeeperThan(text, limits.depth)) {
    return yield* invalidRequest(`Lists and objects may lie at most ${limits.depth} deep in each other.`)
  }
  const value = parse(text)
  if (Result.isFailure(value)) return yield* invalidRequest(`The body is not valid JSON: ${value.failure}.`)
  return { text, value: value.success }
})

/** As `readJson`, for a command whose body may be left out: no body reads as `{}`. */
export const readOptionalJson = (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number
): Effect.Effect<JsonText, Problem> =>
  hasBody(request.headers) ? readJson(request, limitBytes) : Effect.succeed({ text: "{}", value: {} })

const hasBody = ({ "content-length": length, "transfer-encoding": encoding }: Headers.Headers): boolean =>
  encoding !== undefined || (length !== undefined && length !== "0")

const readText = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, limitBytes: number) {
  if (!isJson(request.headers["content-type"])) {
    return yield* unsupportedMediaType("Send the body with content-type: application/json.")
  }
  const bytes = yield* readBytes(request, limitBytes)
  const text = Result.try(() => utf8.decode(bytes))
  return Result.isSuccess(text) ? text.success : yield* invalidRequest("The body is not valid UTF-8.")
})

/** The body, byte for byte, in any form. */
export const readBytes = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number
): Effect.fn.Return<Uint8Array, Problem> {
  const { headers } = request
  if (headers["content-encoding"] !== undefined && headers["content-encoding"] !== "identity") {
    return yield* unsupportedMediaType("Send the body without content-encoding.")
  }
  if (Number(headers["content-length"] ?? 0) > limitBytes) return yield* tooLarge(limitBytes)
  const bytes = yield* request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limitBytes)),
    Effect.mapError(({ reason }) =>
      reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
        ? tooLarge(limitBytes)
        : invalidRequest("The body ended before it was complete.")
    )
  )
  return new Uint8Array(bytes)
})

const isJson = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType)

const parse = (text: string): Result.Result<unknown, string> =>
  text.trim() === ""
    ? Result.fail("it is empty")
    : Result.try({
        try: (): unknown => JSON.parse(text),
        catch: (error) => placeOf((error as Error).message)
      })

/** V8 quotes the text around the mistake; the caller only needs its place. */
const placeOf = (message: string): string => {
  const place = /position (\d+)/.exec(message)
  return place === null ? "it ends too early or holds something that is not JSON" : `see character ${place[1]}`
}

const strictly = { errors: "all", onExcessProperty: "error" } as const

/** `path` stands before every field's name: the place of the decoded value in the request. */
export type Decode<A> = (value: unknown, path?: string) => Result.Result<A, ReadonlyArray<Fault>>

export const decoderOf = <A>(schema: Schema.ConstraintDecoder<A>): Decode<A> => {
  const decode = Schema.decodeUnknownResult(schema, strictly)
  return (value, path = "") => Result.mapError(decode(value), (error) => faultsOf(error.issue, path))
}

/** The decoded body, or every wrong field. */
export const decoded = <A>(decode: Decode<A>, { value }: JsonText): Effect.Effect<A, Problem> =>
  Effect.fromResult(Result.mapError(decode(value), invalidFields))

/** The decoded body of a request about one thing. */
export const bodyOf = <A>(request: HttpServerRequest.HttpServerRequest, decode: Decode<A>) =>
  Effect.flatMap(readJson(request, limits.single), (json) => decoded(decode, json))

const decodeReason = decoderOf(Reason)

/** The reason of a command. It and the whole body may be left out. */
export const readReason = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { reason } = yield* decoded(decodeReason, yield* readOptionalJson(request, limits.single))
  return reason ?? null
})

const describe = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    switch (issue._tag) {
      case "MissingKey":
        return "is required"
      case "UnexpectedKey":
        return "is not a field of this request"
      case "InvalidType":
        // The names of our schemas mean nothing to a caller.
        return SchemaAST.isObjects(issue.ast) ? "must be an object" : sentence(SchemaIssue.defaultLeafHook(issue))
      default:
        return sentence(SchemaIssue.defaultLeafHook(issue))
    }
  },
  checkHook: (issue) => {
    const message = SchemaIssue.defaultCheckHook(issue)
    return message === undefined ? undefined : sentence(message)
  }
})

const sentence = (message: string) =>
  message.replace(/^Expected (?=(array|object))/, "must be an ").replace(/^Expected /, "must be ")

export const faultsOf = (issue: SchemaIssue.Issue, path: string): ReadonlyArray<Fault> =>
  describe(issue).issues.map(({ path: inner, message }) => ({
    field: fieldName(path, inner ?? []) || "body",
    reason: sentence(message)
  }))

type Segment = PropertyKey | { readonly key: PropertyKey }

const fieldName = (path: string, segments: ReadonlyArray<Segment>): string =>
  segments.reduce<string>((name, segment) => {
    const key = typeof segment === "object" ? segment.key : segment
    if (typeof key === "number") return `${name}[${key}]`
    return name === "" ? String(key) : `${name}.${String(key)}`
  }, path)
