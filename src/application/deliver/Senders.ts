/**
 * Open channels with access to their destinations. Settings and secrets are read once per attempt; removed and
 * unreadable destinations are answered here. Secrets that an answer repeats are masked here, before it is used.
 */
import { Context, Effect, Layer } from "effect"
import { outcomeOfFailure, RECONCILE_AFTER_MS } from "../../domain/delivery/classify.ts"
import type { DeliveryError } from "../../domain/delivery/DeliveryError.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { masked } from "../destinations/masking.ts"
import { type AnyChannel, Channels, type Doubted, type OutboundMessage, type Reply } from "../ports/Channels.ts"
import { type DestinationSettings, Destinations } from "../ports/Destinations.ts"
import { StoreUnavailable } from "../ports/errors.ts"

export interface Sender {
  readonly send: (message: OutboundMessage) => Effect.Effect<Reply>
  readonly capacity: (orgId: OrgId, destination: DestinationId) => Effect.Effect<number>
  /** True if the destination drops a duplicate by the message's id; false also when its settings can't be read. */
  readonly dedupes: (orgId: OrgId, destination: DestinationId) => Effect.Effect<boolean>
  readonly doubtMs?: (orgId: OrgId, destination: DestinationId) => Effect.Effect<number>
  readonly disableIfGone?: (
    orgId: OrgId,
    destination: DestinationId,
    outcome: AttemptOutcome
  ) => Effect.Effect<void, StoreUnavailable>
  readonly reconcile?: (message: Doubted) => Effect.Effect<Reply>
}

export class Senders extends Context.Service<Senders, { readonly [channel: string]: Sender }>()(
  "posthaste/application/deliver/Senders"
) {}

/** Attempts at a removed destination need no limit. */
const CAPACITY_GONE = 128

const unknown = (message: string, reconcileAfterMs: number | null): Reply => {
  const error: DeliveryError = { code: "outcome_unknown", message, retryable: false }
  return { outcome: { type: "Unknown", error, status: null, reconcileAfterMs, durationMs: 0 }, responseBody: null }
}

export const senderOf = Effect.fnUntraced(function* (channel: AnyChannel) {
  const destinations = yield* Destinations
  const { send, reconcile } = yield* channel.open
  const { name, noun, missing, dedupes, doubtMs, goneStatus } = channel
  // A secret that does not open must stop this destination alone.
  const find = (orgId: OrgId, id: DestinationId) =>
    destinations.forSending(orgId, id).pipe(
      Effect.map((found) => (found?.destination.channel === name ? found : null)),
      Effect.catchDefect((cause) => Effect.fail(new StoreUnavailable({ cause })))
    )
  const unsent = (code: typeof missing): Reply => ({ outcome: outcomeOfFailure(code, 0), responseBody: null })
  const promised =
    <A>(of: (settings: DestinationSettings) => A, gone: A, unread: A) =>
    (orgId: OrgId, id: DestinationId) =>
      Effect.match(find(orgId, id), {
        onFailure: () => unread,
        onSuccess: (found) => (found === null ? gone : of(found.destination.settings))
      })
  const sender: Sender = {
    send: (message) =>
      Effect.matchEffect(find(message.orgId, message.destination), {
        onFailure: () => Effect.succeed(unsent("store_unavailable")),
        onSuccess: (found) =>
          found === null
            ? Effect.succeed(unsent(missing))
            : Effect.map(send(message, found), (reply) => masked(channel, found, reply))
      }),
    capacity: promised(({ maxInFlight }) => maxInFlight, CAPACITY_GONE, 1),
    // A channel's constant also holds for removed and unreadable destinations.
    dedupes: typeof dedupes === "boolean" ? () => Effect.succeed(dedupes) : promised(dedupes, false, false),
    ...(doubtMs && { doubtMs: promised(doubtMs, RECONCILE_AFTER_MS, RECONCILE_AFTER_MS) }),
    ...(goneStatus && {
      disableIfGone: (orgId, id, outcome) =>
        "status" in outcome && outcome.status === goneStatus
          ? Effect.asVoid(destinations.setDisabled(channel, orgId, id, `it answered ${goneStatus}: it is gone`))
          : Effect.void
    }),
    ...(reconcile && {
      reconcile: (message) =>
        Effect.matchEffect(find(message.orgId, message.destination), {
          onFailure: () =>
            Effect.succeed(unknown(`Posthaste could not read the settings of the ${noun}`, RECONCILE_AFTER_MS)),
          onSuccess: (found) =>
            found === null
              ? Effect.succeed(unknown(`the ${noun} does not exist any more`, null))
              : Effect.map(reconcile(message, found), (reply) => masked(channel, found, reply))
        })
    })
  }
  return sender
})

export const layer = Layer.effect(
  Senders,
  Effect.gen(function* () {
    const channels = [...(yield* Channels).values()]
    const senders = yield* Effect.forEach(channels, (channel) =>
      Effect.map(senderOf(channel), (sender) => [channel.name, sender] as const)
    )
    return Object.fromEntries(senders)
  })
)
