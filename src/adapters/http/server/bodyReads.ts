/** Stores an audit entry before a body is shown. */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { noteAccess } from "../../../application/keys/access.ts"
import { ActingOrg, Caller } from "./auth.ts"

export const noteBodyRead = Effect.fnUntraced(function* (subject: "message" | "event", id: string) {
  const { address } = yield* Caller
  yield* noteAccess(randomUUID(), { type: "BodyRead", orgId: yield* ActingOrg, subject, id, address })
})
