/**
 * A stored fact without what it says of a person: the shape stays, and so does all that the law and the counts go by. In SQL the same
 * is `erased_fact`, held to this by a test over a sample of every shape.
 */
import { isUuid } from "../ids.ts"
import type { RecordedFact } from "../recorded.ts"

export const ERASED = "erased"

/** Details by which a message could be found, or its people be known. */
const details = ["dossierId", "orderingKey", "correlationId", "metadata"] as const

export const erasedFact = ({ name, data }: RecordedFact): RecordedFact => {
  const said = JSON.parse(data) as Record<string, unknown>
  const erased: Record<string, unknown> = { ...said }
  // What a dossier's consent refused stays with its dossier, as the consent does.
  const isBlocked = name.startsWith("MessageBlocked@")
  for (const field of details) if (field in said && !(isBlocked && field === "dossierId")) erased[field] = null
  // What names a destination names no person.
  if (namesPerson(said["to"])) erased["to"] = ERASED
  if ("providerMessageId" in said) erased["providerMessageId"] = null
  if (said["error"] !== null && typeof said["error"] === "object") {
    erased["error"] = { ...said["error"], message: ERASED }
  }
  const type = name.slice(0, name.indexOf("@"))
  if (freely.has(type) && "reason" in said) erased["reason"] = null
  // What was refused names fields as their caller named them.
  if (type === "CommandRefused") Object.assign(erased, { key: null, detail: ERASED })
  if (type === "ReplayRequested") erased["selection"] = erasedSelection(said["selection"] as object)
  delete erased["traceparent"]
  delete erased["routingKey"]
  return { name, data: JSON.stringify(erased) }
}

const namesPerson = (to: unknown): boolean => typeof to === "string" && !isUuid(to)

/** Which messages a job is for, without whom they are for. */
export const erasedSelection = (selection: object): object => {
  const without = (said: { readonly to?: unknown; readonly correlationId?: unknown }) => ({
    ...said,
    ...(namesPerson(said.to) && { to: ERASED }),
    ...("correlationId" in said && { correlationId: ERASED })
  })
  const { filter, waiting } = selection as { readonly filter?: object; readonly waiting?: object }
  return { ...selection, ...(filter && { filter: without(filter) }), ...(waiting && { waiting: without(waiting) }) }
}

/** Facts whose reason a person wrote. */
const freely = new Set([
  "MessageCancelled",
  "MessageDismissed",
  "MessageReplayed",
  "MessageBodyErased",
  "EventErased",
  "ReplayRequested",
  "ReplayCancelled"
])
