/**
 * Asks Meta whether an access token acts for a phone number. Phone number ids are public: without this check an org
 * could bind another's number and get its receipts.
 */
import { Effect } from "effect"
import type { Fault } from "../../../application/errors.ts"
import { OwnershipNotKnown } from "../../../application/ports/Channels.ts"
import { agentHeaders } from "../net/agent.ts"
import type { EgressRules } from "../net/guardedConnect.ts"
import { destinationOf, makeTries } from "../net/tries.ts"
import { graphErrorOf, idOf } from "./answer.ts"
import type { WhatsAppSettings } from "./settings.ts"

const TIMEOUT_MS = 10_000

interface Asking {
  readonly baseUrl: URL
  readonly rules: EgressRules
}

const notKnown = (why: string) =>
  new OwnershipNotKnown({ message: `Meta was asked whether the access token acts for the phone number, and ${why}.` })

export const ownershipAt = ({ baseUrl, rules }: Asking) =>
  Effect.fnUntraced(function* (
    { phoneNumberId, graphVersion }: WhatsAppSettings,
    { accessToken }: Readonly<Record<string, string>>
  ): Effect.fn.Return<ReadonlyArray<Fault>, OwnershipNotKnown> {
    // An unchanged token needs no new proof.
    if (accessToken === undefined) return []
    const path = `${baseUrl.pathname.replace(/\/$/, "")}/${graphVersion}/${phoneNumberId}`
    const asked = { id: `ownership of ${phoneNumberId}`, version: 1 }
    const destination = destinationOf(asked, new URL(path, baseUrl), TIMEOUT_MS)
    const headers = [...["authorization", `Bearer ${accessToken}`], ...agentHeaders]
    const { outcome, responseBody } = yield* Effect.flatMap(makeTries(rules), (attempt) =>
      attempt(destination, () => ({ method: "GET", path: `${path}?fields=id`, headers }))
    ).pipe(Effect.scoped)
    if (outcome.type === "Accepted" && idOf(responseBody) === phoneNumberId) return []
    const error = graphErrorOf(responseBody)
    if (outcome.type === "Refused" && error !== null && !error.isTransient) {
      const reason = `does not act for this phone number, as Meta says (error ${error.code})`
      return [{ field: "accessToken", reason }]
    }
    const status = "status" in outcome ? outcome.status : null
    return yield* notKnown(status === null ? "did not answer" : `answered ${status} without saying`)
  })
