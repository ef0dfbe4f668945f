/**
 * Asks whether an org and the key of the request may do so much now. Idempotency keys are looked up only where an
 * answer depends on them.
 */
import { Effect } from "effect"
import { Admission } from "../../../application/orgs/admission.ts"
import { EventStore } from "../../../application/ports/EventStore.ts"
import { Events } from "../../../application/ports/Events.ts"
import type { StoreUnavailable } from "../../../application/ports/errors.ts"
import { Replays } from "../../../application/ports/Replays.ts"
import { Telemetry } from "../../../application/ports/Telemetry.ts"
import { Via } from "../../../application/via.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { Caller } from "../server/auth.ts"

/** Null for a request without an idempotency key. */
type Keys = ReadonlyArray<string | null>

export const admitMessages = Effect.fnUntraced(function* (orgId: OrgId, bytes: number, keys: Keys) {
  const { acceptedUnder } = yield* EventStore
  yield* admit(orgId, bytes, keys, (key) => acceptedUnder(orgId, key))
})

export const admitEvents = Effect.fnUntraced(function* (orgId: OrgId, bytes: number, keys: Keys) {
  const { publishedUnder } = yield* Events
  yield* admit(orgId, bytes, keys, (key) => publishedUnder(orgId, key))
})

/** The keys of a batch before its entries are decoded. */
export const keysIn = (entries: ReadonlyArray<unknown>): Keys =>
  entries.map((entry) =>
    typeof entry === "object" && entry !== null && "idempotencyKey" in entry && typeof entry.idempotencyKey === "string"
      ? entry.idempotencyKey
      : null
  )

export const admitReplay = Effect.fnUntraced(function* (orgId: OrgId, key: string | null) {
  const { another } = yield* Admission
  const { requestedUnder } = yield* Replays
  yield* another(
    orgId,
    "replays",
    allKnown([key], (one) => requestedUnder(orgId, one))
  )
})

export const admitDestination = (orgId: OrgId) =>
  Effect.flatMap(Admission, ({ another }) => another(orgId, "destinations", Effect.succeed(false)))

type Look = (key: string) => Effect.Effect<object | null, StoreUnavailable>

const admit = Effect.fnUntraced(function* (orgId: OrgId, bytes: number, keys: Keys, look: Look) {
  const { accept } = yield* Admission
  const { limited } = yield* Caller
  const asked = { count: keys.length, bytes, key: limited, isRepeat: allKnown(keys, look) }
  yield* Effect.tapErrorTag(accept(orgId, asked), "LimitReached", () => refused(keys.length))
})

/** Ends with the first that is new. */
const allKnown = Effect.fnUntraced(function* (keys: Keys, look: Look) {
  for (const key of keys) if (key === null || (yield* look(key)) === null) return false
  return true
})

const refused = Effect.fnUntraced(function* (count: number) {
  const telemetry = yield* Telemetry
  const via = yield* Via
  for (let i = 0; i < count; i++) telemetry.rejected(via, "limit_reached")
})
