/**
 * Sends alerts as messages, under idempotency keys that name their facts. Alerts with one subject arrive in the order
 * of their facts: a "closed" that overtook its "opened" would leave an incident open for ever.
 */
import { Effect, Array as EffectArray } from "effect"
import type { Alert } from "../../domain/alert/alert.ts"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { detailsOf } from "../../domain/message/facts.ts"
import { acceptMessages, type MessageRequest, OWN_KEYS } from "../accept/acceptMessage.ts"
import { AlertFormats } from "../ports/AlertFormats.ts"
import { Via } from "../via.ts"
import type { AlertTarget } from "./alertTargets.ts"

export interface TargetAlert {
  readonly target: AlertTarget
  readonly alert: Alert
  /** The fact it is about: `<stream>:<version>`. */
  readonly origin: string
}

/** Answers the ids of the messages. A target that was just removed gets none. */
export const sendAlerts = Effect.fnUntraced(function* (alerts: ReadonlyArray<TargetAlert>) {
  const formats = yield* AlertFormats
  const request = ({ target, alert, origin }: TargetAlert): MessageRequest => {
    const { channel, bodyOf } = formats[target.type]
    return {
      channel,
      to: target.id,
      ...detailsOf({ eventType: alert.type, orderingKey: alert.subject }),
      deliverAt: null,
      expiresAt: null,
      retry: null,
      body: bodyOf(alert, target.severity),
      idempotencyKey: `${OWN_KEYS}alert:${origin}:${target.id}`
    }
  }
  const messages: Array<MessageId> = []
  for (const [orgId, some] of batchesOf(alerts)) {
    const answers = yield* Effect.provideService(acceptMessages(orgId, some.map(request)), Via, "alert")
    for (const [index, answer] of answers.entries()) {
      if (answer.type === "Refused") {
        const reasons = answer.faults.map(({ field, reason }) => `${field} ${reason}`).join("; ")
        yield* Effect.logWarning(`alert target ${some[index]!.target.id} can't get an alert: ${reasons}`)
      } else if (answer.type === "Accepted" || answer.type === "AlreadyAccepted") {
        messages.push(answer.message.id)
      }
      // Suspended: nothing goes out for the org. Reused: the alert was sent with another text, before its destination
      // changed.
    }
  }
  return messages
})

const AT_ONCE = 500

const batchesOf = (alerts: ReadonlyArray<TargetAlert>): ReadonlyArray<readonly [OrgId, ReadonlyArray<TargetAlert>]> =>
  [...Map.groupBy(alerts, ({ target }) => target.orgId)].flatMap(([orgId, ofOrg]) =>
    EffectArray.chunksOf(ofOrg, AT_ONCE).map((some) => [orgId, some] as const)
  )
