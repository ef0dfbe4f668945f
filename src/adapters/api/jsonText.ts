/**
 * The JSON text of a request. Text that is not UTF-8, not JSON or nested too deeply is refused. The text stays beside
 * its value: a payload is delivered as it was written (rawJson.ts).
 */
import { Result } from "effect"
import { invalidRequest, type Problem } from "./problem.ts"
import { isDeeperThan } from "./rawJson.ts"

/** Of one request, in bytes. */
export const SIZE_MAX = 256 * 1024
/** Deeper than people write, less deep than what breaks a receiver's parser. */
const DEPTH_MAX = 100

export interface JsonText {
  readonly text: string
  readonly value: unknown
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

export const textOf = (bytes: Uint8Array): Result.Result<string, Problem> =>
  Result.try({ try: () => utf8.decode(bytes), catch: () => invalidRequest("The body is not valid UTF-8.") })

/** `what`: the subject of a refusal. */
export const jsonOf = (text: string, what = "The body", depthMax = DEPTH_MAX): Result.Result<JsonText, Problem> => {
  if (isDeeperThan(text, depthMax)) {
    return Result.fail(invalidRequest(`Lists and objects may lie at most ${DEPTH_MAX} deep in each other.`))
  }
  return Result.mapBoth(parse(text), {
    onFailure: (reason) => invalidRequest(`${what} is not valid JSON: ${reason}.`),
    onSuccess: (value) => ({ text, value })
  })
}

export const isJson = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType)

const parse = (text: string): Result.Result<unknown, string> =>
  text.trim() === ""
    ? Result.fail("it is empty")
    : Result.try({ try: (): unknown => JSON.parse(text), catch: (error) => placeOf((error as Error).message) })

/** V8 quotes the text around the mistake; the place is enough. */
const placeOf = (message: string): string => {
  const place = /position (\d+)/.exec(message)
  return place === null ? "it ends too early or holds something that is not JSON" : `see character ${place[1]}`
}
