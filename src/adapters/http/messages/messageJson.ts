/** The facts and attempts of a message in the words of the API. */
import { typeOf } from "../../../application/log/feed.ts"
import type { StreamFact } from "../../../application/log/readStream.ts"
import type { MessageStatus } from "../../../domain/message/machine.ts"
import { toRecorded } from "../../../domain/message/recorded.ts"
import type { Status } from "../../../domain/message/transitions.ts"
import type { AttemptView, StoredFact } from "../../../domain/message/view.ts"

/** A stored fact of any stream. */
export const factJson = (fact: StreamFact) => ({
  version: fact.version,
  name: fact.name,
  type: typeOf(fact),
  at: fact.at,
  data: JSON.parse(fact.data) as unknown
})

export const eventJson = (step: StoredFact & { readonly status: Status }) => {
  const { version, at, fact } = step
  const { name: _, ...event } = factJson({ version, at, ...toRecorded(fact) })
  // After a fact a message is never NEW.
  return { ...event, status: step.status as MessageStatus }
}

export const attemptJson = ({
  status,
  responseBody,
  ...attempt
}: AttemptView & { readonly responseBody: string | null }) => ({ ...attempt, response: { status, body: responseBody } })
