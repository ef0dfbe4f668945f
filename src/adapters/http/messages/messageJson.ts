/** The facts and attempts of a message in the words of the API. */
import type { Effect } from "effect"
import { typeOf } from "../../../application/log/feed.ts"
import type { StreamFact } from "../../../application/log/readStream.ts"
import type { readAttempts } from "../../../application/messages/readAttempts.ts"
import type { Exchange } from "../../../domain/delivery/exchange.ts"
import type { MessageStatus } from "../../../domain/message/machine.ts"
import { toRecorded } from "../../../domain/message/recorded.ts"
import type { Status } from "../../../domain/message/transitions.ts"
import type { StoredFact } from "../../../domain/message/view.ts"
import { wholeOf } from "../../../domain/recorded.ts"

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
  const recorded = toRecorded(fact)
  const { name: _, ...event } = factJson({ version, at, name: recorded.name, data: wholeOf(recorded) })
  // After a fact a message is never NEW.
  return { ...event, status: step.status as MessageStatus }
}

export const attemptJson = ({
  status,
  durationMs,
  exchange,
  answer,
  ...attempt
}: Effect.Success<ReturnType<typeof readAttempts>>["items"][number]) => ({
  ...attempt,
  response: { status, headers: answer?.headers ?? null, body: answer?.body || null },
  timing: exchange === null ? null : timingOf(exchange, durationMs)
})

const timingOf = ({ dnsMs, connectMs, tlsMs, firstByteMs }: Exchange, totalMs: number | null) => ({
  dnsMs: dnsMs ?? null,
  connectMs: connectMs ?? null,
  tlsMs: tlsMs ?? null,
  firstByteMs: firstByteMs ?? null,
  totalMs
})
