/** What is stored of a message or an event beside its facts, in the form in which it is stored: sealed or in the clear. */
import type { AttemptResponse, UsedKey } from "../../../application/ports/EventStore.ts"
import type { EventId, MessageId } from "../../../domain/ids.ts"
import { isSealed, type Texts } from "../SealedTexts.ts"

type Answer = Pick<AttemptResponse, "body" | "headers">
type Place = Pick<AttemptResponse, "epoch" | "attempt">

const attemptOf = (id: MessageId, { epoch, attempt }: Place) => `${id}/${epoch}/${attempt}`

/** Sealed, body and headers are one text. */
export const storedAnswer = (texts: Texts, id: MessageId, response: AttemptResponse): Answer => {
  // PostgreSQL text can't hold NUL; what a stranger answered is shown to people, not parsed.
  const body = response.body.replaceAll("\u0000", "\ufffd")
  const { headers } = response
  return texts.seals
    ? { body: texts.seal("answer", attemptOf(id, response), JSON.stringify([body, headers])), headers: null }
    : { body: texts.seal("answer", "", body), headers }
}

export const openedAnswer = (texts: Texts, id: MessageId, place: Place, stored: Answer): Answer => {
  const text = texts.open(stored.body, { answer: attemptOf(id, place) })
  if (!isSealed(stored.body)) return { body: text, headers: stored.headers }
  const [body, headers] = JSON.parse(text) as [string, Answer["headers"]]
  return { body, headers }
}

/** Of a message without a text of its own it is that of its event. */
export const openedBody = (texts: Texts, id: MessageId, event: EventId | null | undefined, stored: string): string =>
  texts.open(stored, { body: id, eventBody: event ?? undefined })

type WhoseKey = "keyOfMessage" | "keyOfEvent"
const keyId = ({ orgId, key }: Pick<UsedKey, "orgId" | "key">) => `${orgId}:${key}`

export const storedHash = (texts: Texts, used: UsedKey, whose: WhoseKey = "keyOfMessage"): string =>
  texts.seal(whose, keyId(used), used.requestHash)

export const openedHash = (
  texts: Texts,
  stored: string,
  used: Pick<UsedKey, "orgId" | "key">,
  whose: WhoseKey = "keyOfMessage"
): string => texts.open(stored, { [whose]: keyId(used) })
