/** An explanation in the words of the API: each action with the request that does it. */
import type { Action, Cause, Explanation } from "../../../domain/message/explanation.ts"

const causeJson = ({ reason, says, since, until, waitsFor }: Cause) => ({ reason, says, since, until, waitsFor })

/** `path` says where the destinations of the message's channel are. */
export const explanationJson = (explanation: Explanation, path: string | null) => {
  const { id, status, at, also, next, before, ahead, actions, unknown } = explanation
  return {
    id,
    status,
    at,
    ...causeJson(explanation),
    also: also.map(causeJson),
    next,
    before,
    ahead,
    actions: actions.flatMap((action) => {
      const request = requestOf(action, path)
      return request === null
        ? []
        : [{ action: action.action, says: action.says, method: "POST" as const, path: request }]
    }),
    unknown
  }
}

const requestOf = ({ action, on, id }: Action, path: string | null): string | null => {
  switch (on) {
    case "message":
      return `/api/v1/outbound/messages/${id}/${action}`
    case "circuit":
      return `/api/v1/circuits/${id}/${action}`
    case "destination":
      return path === null ? null : `/api/v1/${path}/${id}/${action}`
  }
}
