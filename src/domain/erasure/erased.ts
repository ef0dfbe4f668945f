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
  const said: unknown = JSON.parse(data)
  // Facts that no release can read are erased too: they may be of any shape.
  if (!isObject(said)) return { name, data: "null" }
  const erased: Record<string, unknown> = { ...said }
  // What a dossier's consent refused stays with its dossier, as the consent does.
  const isBlocked = name.startsWith("MessageBlocked@")
  for (const field of details) if (field in said && !(isBlocked && field === "dossierId")) erased[field] = null
  // What names a destination names no person.
  if (namesPerson(said["to"])) erased["to"] = ERASED
  if ("providerMessageId" in said) erased["providerMessageId"] = null
  if (isObject(said["error"])) {
    erased["error"] = { ...said["error"], message: ERASED }
  }
  const type = name.slice(0, name.indexOf("@"))
  if (freely.has(type) && "reason" in said) erased["reason"] = null
  // What was refused names fields as their caller named them.
  if (type === "CommandRefused") Object.assign(erased, { key: null, detail: ERASED })
  if (type === "ReplayRequested" && isObject(said["selection"]))
    erased["selection"] = erasedSelection(said["selection"])
  delete erased["traceparent"]
  delete erased["routingKey"]
  return { name, data: JSON.stringify(erased) }
}

/** Who came by a broker is known by the key of the command. */
export const erasedActor = (actor: string | null): string | null => (actor?.startsWith("amqp:") ? "amqp" : actor)

/** Whether a fact says anything that an erasure would replace. */
export const isPersonal = (fact: RecordedFact, actor: string | null): boolean =>
  erasedActor(actor) !== actor || erasedFact(fact).data !== JSON.stringify(JSON.parse(fact.data))

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
