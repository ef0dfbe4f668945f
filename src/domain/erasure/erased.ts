/**
 * A stored fact without what it says of a person: the shape stays, and so does all that the law and the counts go by. In SQL the same
 * is `erased_fact`, held to this by a test over a sample of every shape.
 */
import { isUuid } from "../ids.ts"
import type { RecordedFact } from "../recorded.ts"

export const ERASED = "erased"

/** Details by which a message could be found, or its people be known. */
const details = ["dossierId", "orderingKey", "correlationId", "metadata"] as const

/** What an erased fact does not even have. */
const traces = ["traceparent", "routingKey"] as const

export const erasedFact = ({ name, data }: RecordedFact): RecordedFact => {
  const said: unknown = JSON.parse(data)
  const left = leftOf(name, said)
  return left === said ? { name, data } : { name, data: JSON.stringify(left) }
}

/** The same of a fact whose JSON is parsed. What says nothing of a person is the very thing that was given. */
export const leftOf = (name: string, said: unknown): unknown => {
  // Facts that no release can read are erased too: they may be of any shape.
  if (!isObject(said)) return null
  let left: Record<string, unknown> | null = null
  const replace = (field: string, by: unknown) => {
    left ??= { ...said }
    left[field] = by
  }
  const [type = ""] = name.split("@")
  // What a dossier's consent refused stays with its dossier, as the consent does.
  const isBlocked = type === "MessageBlocked"
  for (const field of details) {
    if (said[field] != null && !(isBlocked && field === "dossierId")) replace(field, null)
  }
  // What names a destination names no person.
  const { to, providerMessageId, error, reason, selection } = said
  if (namesPerson(to) && to !== ERASED) replace("to", ERASED)
  if (providerMessageId != null) replace("providerMessageId", null)
  if (isObject(error) && error["message"] !== ERASED) replace("error", { ...error, message: ERASED })
  if (reason != null && freely.has(type)) replace("reason", null)
  // What was refused names fields as their caller named them.
  if (type === "CommandRefused" && (said["key"] !== null || said["detail"] !== ERASED)) {
    replace("key", null)
    replace("detail", ERASED)
  }
  if (type === "ReplayRequested" && isObject(selection)) {
    const erased = erasedSelection(selection)
    if (JSON.stringify(erased) !== JSON.stringify(selection)) replace("selection", erased)
  }
  if (traces.some((field) => field in said)) {
    left ??= { ...said }
    for (const field of traces) delete left[field]
  }
  return left ?? said
}

/** Who came by a broker is known by the key of the command. */
export const erasedActor = (actor: string | null): string | null => (actor?.startsWith("amqp:") ? "amqp" : actor)

/** Whether a fact says anything that an erasure would replace. */
export const isPersonal = (fact: RecordedFact, actor: string | null): boolean =>
  erasedActor(actor) !== actor || erasedFact(fact).data !== fact.data

/** Journals that an erasure may change; those of settings, circuits and consents tell of nobody, or stay. */
export const isErasable = (stream: string): boolean => /^(blocked|command|event|message|replay)-/.test(stream)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const namesPerson = (to: unknown): boolean => typeof to === "string" && !isUuid(to)

/** Which messages a job is for, without whom they are for. */
export const erasedSelection = (selection: object): object => {
  const without = (said: { readonly to?: unknown; readonly correlationId?: unknown }) => ({
    ...said,
    ...(namesPerson(said.to) && { to: ERASED }),
    ...("correlationId" in said && { correlationId: ERASED })
  })
  const { filter, waiting } = selection as { readonly filter?: object; readonly waiting?: object }
  return {
    ...selection,
    ...(isObject(filter) && { filter: without(filter) }),
    ...(isObject(waiting) && { waiting: without(waiting) })
  }
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
