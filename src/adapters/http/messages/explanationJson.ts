/** An explanation in the words of the API: each action with the request that does it. */
import type { Cause } from "../../../domain/message/explanation/cause.ts"
import type { Explanation } from "../../../domain/message/explanation/explain.ts"

const causeJson = ({ reason, says, since, until, waitsFor }: Cause) => ({ reason, says, since, until, waitsFor })

export const explanationJson = (explanation: Explanation) => {
  const { id, status, at, also, next, before, ahead, actions, restored, unknown } = explanation
  return {
    id,
    status,
    at,
    ...causeJson(explanation),
    also: also.map(causeJson),
    next,
    before,
    ahead,
    actions: actions.map(({ action, on, id: of, says }) => ({
      action,
      says,
      method: "POST" as const,
      path: `/api/v1/${on === "message" ? "outbound/messages" : "destinations"}/${of}/${action}`
    })),
    restored,
    unknown
  }
}
