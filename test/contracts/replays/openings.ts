/** Replays as they are asked for. */
import { randomUUID } from "node:crypto"
import type { Opening } from "../../../src/application/ports/Replays.ts"
import { type OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { newMessageId, now } from "../sample.ts"

/** Of so many messages by their ids, unless changed. */
export const listed = (orgId: OrgId, count: number, change: Partial<Opening> = {}): Opening => {
  const ids = Array.from({ length: count }, newMessageId)
  return {
    id: ReplayId.make(randomUUID()),
    orgId,
    selection: { ids },
    reason: "the endpoint is back",
    requestedAt: now(),
    set: { items: ids.map((messageId, index) => ({ messageId, epoch: index + 1 })) },
    idempotency: null,
    ...change
  }
}
