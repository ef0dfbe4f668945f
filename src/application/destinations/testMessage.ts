/**
 * A message that tests an endpoint: sent, signed and retried like every other, and marked as a test wherever it is
 * seen.
 */
import { DateTime, Effect } from "effect"
import type { ChannelName, DestinationId, OrgId } from "../../domain/ids.ts"
import { acceptMessages } from "../accept/acceptMessage.ts"
import { EventTypes } from "../ports/EventTypes.ts"

const TYPE_DEFAULT = "posthaste.test"

export const sendTestMessage = Effect.fnUntraced(function* (
  orgId: OrgId,
  channel: ChannelName,
  destination: DestinationId,
  eventType: string | null
) {
  const type = eventType ?? TYPE_DEFAULT
  const { type: known } = yield* (yield* EventTypes).entry(orgId, type)
  const data = known?.example ?? JSON.stringify({ message: "A test by Posthaste. Nothing happened." })
  const timestamp = DateTime.formatIso(yield* DateTime.now)
  const [acceptance] = yield* acceptMessages(orgId, [
    {
      ...{ channel, to: destination, eventType: type, templateCode: null, dossierId: null, orderingKey: null },
      ...{ correlationId: null, metadata: null, test: true, deliverAt: null, expiresAt: null, retry: null },
      body: `{"type":${JSON.stringify(type)},"timestamp":"${timestamp}","test":true,"data":${data}}`,
      idempotencyKey: null
    }
  ])
  return acceptance!
})
