/**
 * Sends alerts as what they are to everybody else: messages, with all their promises. An alert that is raised twice
 * is one message, because its key says which fact it is about.
 *
 * Alerts about one trouble arrive in the order they were raised: a "closed" that overtook its "opened" would leave
 * an incident open for ever.
 */
import { Effect, Array as EffectArray } from "effect"
import type { Alert } from "../../domain/alert/alert.ts"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { detailsOf } from "../../domain/message/facts.ts"
import { acceptMessages, type MessageRequest } from "../accept/acceptMessage.ts"
import { AlertFormats } from "../ports/AlertFormats.ts"
import type { AlertTarget } from "./alertTargets.ts"

export interface Raised {
  readonly target: AlertTarget
  readonly alert: Alert
  /** Of the fact it is about: `<stream>:<version>`. */
  readonly origin: string
}

/** Answers the messages that the alerts became. A target that was removed a moment ago is not told. */
export const raiseAlerts = Effect.fnUntraced(function* (raised: ReadonlyArray<Raised>) {
  const formats = yield* AlertFormats
  const request = ({ target, alert, origin }: Raised): MessageRequest => {
    const { channel, bodyOf } = formats[target.type]
    return {
      channel,
      to: target.id,
      ...detailsOf({ eventType: alert.type, orderingKey: alert.subject }),
      deliverAt: null,
      expiresAt: null,
      retry: null,
      body: bodyOf(alert, target.severity),
      idempotencyKey: `alert:${origin}:${target.id}`
    }
  }
  const messages: Array<MessageId> = []
  for (const [orgId, some] of stretchesOf(raised)) {
    const answers = yield* acceptMessages(orgId, some.map(request))
    for (const [index, answer] of answers.entries()) {
      if (answer.type === "Refused") {
        const reasons = answer.faults.map(({ field, reason }) => `${field} ${reason}`).join("; ")
        yield* Effect.logWarning(`alert target ${some[index]!.target.id} can't be told: ${reasons}`)
      } else if (answer.type === "Accepted" || answer.type === "AlreadyAccepted") {
        messages.push(answer.message.id)
      }
      // Reused: told before, in words that were a little different, because its destination has moved since.
    }
  }
  return messages
})

const AT_ONCE = 500

/** Of one org each, in the order they were raised. */
const stretchesOf = (raised: ReadonlyArray<Raised>): ReadonlyArray<readonly [OrgId, ReadonlyArray<Raised>]> =>
  [...Map.groupBy(raised, ({ target }) => target.orgId)].flatMap(([orgId, ofOrg]) =>
    EffectArray.chunksOf(ofOrg, AT_ONCE).map((some) => [orgId, some] as const)
  )
