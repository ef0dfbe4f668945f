/**
 * The reason why Posthaste does not start, in one line for its operator. A bug is shown with its stack instead, for the
 * developer who has to find it.
 */
import { Cause, Result } from "effect"

export const startupErrorOf = (cause: Cause.Cause<unknown>): string =>
  Result.match(Cause.findError(cause), {
    onFailure: () => `posthaste: a bug stopped it\n${Cause.pretty(cause)}`,
    onSuccess: (error) => `posthaste: ${lineOf(error)}`
  })

/** An adapter's error often says only that something failed; the reason is in its cause. */
const lineOf = (error: unknown): string => {
  const said = words(error)
  switch (tagOf(error)) {
    case "ServeError":
      return `can't listen on HOST and PORT: ${said}`
    case "QueryFailed":
    case "StoreUnavailable":
      return `can't work with the database: ${said}`
    default:
      return said
  }
}

const words = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  // One address refused after another, as `localhost` does.
  if (error instanceof AggregateError && error.message === "") return error.errors.map(words).join("; ")
  const inner = error.cause === undefined ? "" : words(error.cause)
  const own = error.message === "" || error.message === inner ? "" : error.message
  return oneLine([own, inner].filter((text) => text !== "").join(": ") || error.name)
}

const oneLine = (text: string): string => text.split("\n", 1)[0]!

const tagOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "_tag" in error ? error._tag : null
