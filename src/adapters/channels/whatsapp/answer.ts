/** Reads Meta's answers: the id of the message, or the error. */
import { Result } from "effect"
import type { GraphError } from "./errors.ts"

export type Members = Readonly<Record<string, unknown>>

export const membersOf = (value: unknown): Members =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {}

export const itemsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const parsed = (body: string | null): Members =>
  membersOf(
    Result.getOrElse(
      Result.try((): unknown => JSON.parse(body ?? "")),
      () => null
    )
  )

export const PROVIDER_ID_MAX = 512

/** Id that receipts will carry. */
export const providerMessageIdOf = (body: string | null): string | null => {
  const { messages } = parsed(body)
  const { id } = membersOf(itemsOf(messages)[0])
  return typeof id === "string" && id !== "" && id.length <= PROVIDER_ID_MAX ? id : null
}

export const idOf = (body: string | null): string | null => {
  const { id } = parsed(body)
  return typeof id === "string" ? id : null
}

/** Null when the body is not from Meta's API. */
export const graphErrorOf = (body: string | null): GraphError | null => {
  const { code, error_subcode: subcode, is_transient: isTransient } = membersOf(parsed(body)["error"])
  return typeof code === "number" && Number.isSafeInteger(code)
    ? { code, subcode: typeof subcode === "number" ? subcode : null, isTransient: isTransient === true }
    : null
}
