/** Asks whether an org may give so much now, and counts what it may not. */
import { Effect } from "effect"
import { Admission } from "../../../application/orgs/admission.ts"
import { Telemetry } from "../../../application/ports/Telemetry.ts"
import { Via } from "../../../application/via.ts"
import type { OrgId } from "../../../domain/ids.ts"

export const admit = Effect.fnUntraced(function* (orgId: OrgId, count: number, text: string) {
  const { accept } = yield* Admission
  yield* Effect.tapErrorTag(accept(orgId, count, text.length), "LimitReached", () => refused(count))
})

const refused = Effect.fnUntraced(function* (count: number) {
  const telemetry = yield* Telemetry
  const via = yield* Via
  for (let i = 0; i < count; i++) telemetry.rejected(via, "limit_reached")
})
