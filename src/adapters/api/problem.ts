/**
 * Problems of requests, by any way in: one JSON form (RFC 9457), one `type` a kind, and the name of every wrong field.
 * A problem tells the caller what to change and reveals nothing of how Posthaste is built.
 */
import { DateTime, Schema } from "effect"
import type { EventNotFound } from "../../application/events/readEvents.ts"
import type { ProjectionNotFound } from "../../application/log/projections/rebuild.ts"
import type { CallerCommand, CommandRefused, MessageBusy } from "../../application/messages/commandMessage.ts"
import type { NotInItsLane } from "../../application/messages/hurryMessage.ts"
import type { MessageNotFound, MessageParked } from "../../application/messages/readMessage.ts"
import type { BodyErased } from "../../application/messages/resendMessage.ts"
import type { LimitReached } from "../../application/orgs/admission.ts"
import type { AnyChannel, OwnershipNotKnown } from "../../application/ports/Channels.ts"
import type { Fault, SecretsNeeded, StoreUnavailable } from "../../application/ports/errors.ts"
import type { Setting } from "../../application/ports/fields.ts"
import type { Scope } from "../../application/ports/scopes.ts"
import type { ReplayKeyReused, ReplayNotFound } from "../../application/replays/replays.ts"
import type { MessageBlocked } from "../../domain/consent/facts.ts"
import type { ReplayRejected } from "../../domain/replay/decider.ts"
import { FAULTS_MAX } from "./decoding.ts"

export const ProblemBody = Schema.Struct({
  type: Schema.String.annotate({ description: "Names the kind of trouble; stable across releases." }),
  title: Schema.String,
  status: Schema.Int,
  detail: Schema.String,
  errors: Schema.Array(Schema.Struct({ field: Schema.String, reason: Schema.String })).annotate({
    description: `The fields that are wrong, up to ${FAULTS_MAX}, each with its path in the request. Empty when no field is to blame.`
  })
}).annotate({ identifier: "Problem" })
export type ProblemBody = typeof ProblemBody.Type

export class Problem extends Schema.TaggedError<Problem>()("Problem", {
  body: ProblemBody,
  headers: Schema.Record(Schema.String, Schema.String)
}) {}

const problem =
  (status: number, slug: string, title: string) =>
  (detail: string, errors: ReadonlyArray<Fault> = [], headers: Record<string, string> = {}) =>
    new Problem({ body: { type: `urn:posthaste:problem:${slug}`, title, status, detail, errors }, headers })

export const invalidRequest = problem(400, "invalid-request", "The request is not valid")
export const invalidFields = (all: ReadonlyArray<Fault>) => {
  const faults = all.slice(0, FAULTS_MAX)
  return invalidRequest(`${faults.map(({ field, reason }) => `${field} ${reason}`).join("; ")}.`, faults)
}
export const unauthorized = (detail: string) =>
  problem(401, "unauthorized", "A valid API key is needed")(detail, [], { "www-authenticate": "Bearer" })
export const unproven = problem(401, "unproven", "Nothing proves that this comes from Meta")
export const wrongVerifyToken = () =>
  problem(
    403,
    "wrong-verify-token",
    "This is not how it was set up"
  )("No WhatsApp account has this hub.verify_token, or hub.mode is not subscribe.")
export const forbidden = problem(403, "forbidden", "This key may not do that")
export const lacking = (scope: Scope) => forbidden(`This key lacks the scope ${scope}.`)
export const orgSuspended = (reason: string) =>
  problem(
    403,
    "org-suspended",
    "The org is suspended"
  )(`The operator has suspended this org: ${reason}. What it sent before waits.`)
/** A quota is exceeded; asking again may help after so many seconds. */
export const tooMuch = (detail: string, afterSeconds: number) =>
  problem(429, "limit-reached", "A limit is reached")(detail, [], { "retry-after": String(afterSeconds) })
const limitReached = ({ of, limit, allowed, afterSeconds }: LimitReached) =>
  tooMuch(`The limit ${limit} of this ${of} is ${allowed}. Try again in ${afterSeconds} s.`, afterSeconds)
export const blocked = ({ channel, reason }: MessageBlocked, path: string) =>
  problem(
    403,
    "blocked-by-policy",
    "The dossier's consent does not allow this"
  )(
    reason === "consent withdrawn"
      ? `The consent of this dossier to ${channel} was withdrawn.`
      : `There is no consent of this dossier to ${channel}: record it before you send.`,
    [{ field: `${path}dossierId`, reason: `has no consent for ${channel}` }]
  )
export const eventBlocked = (faults: ReadonlyArray<Fault>) =>
  problem(
    403,
    "blocked-by-policy",
    "The dossier's consent does not allow this"
  )("The consent of this dossier was withdrawn, so no endpoint is told of the event.", faults)
/** Faults of a schema, or of an example against it. */
export const invalidSchema = (faults: ReadonlyArray<Fault>) =>
  problem(
    422,
    "invalid-schema",
    "The schema can't be used"
  )(`${faults.map(({ field, reason }) => `${field} ${reason}`).join("; ")}.`, faults)
export const eventTypeTaken = () =>
  problem(
    409,
    "event-type-exists",
    "The org has a type of this name"
  )("The org's catalogue has a type of this name, perhaps an archived one: PUT changes it, and brings it back.", [
    { field: "name", reason: "is taken" }
  ])
/** Faults against the org's catalogue of event types. */
export const unfit = (faults: ReadonlyArray<Fault>) =>
  problem(
    422,
    "unfit-event",
    "The catalogue of event types does not allow this"
  )(`${faults.map(({ field, reason }) => `${field} ${reason}`).join("; ")}.`, faults)
/** A change would take a destination's secrets to another place. */
const secretsNeeded = ({ faults }: SecretsNeeded) =>
  problem(
    422,
    "secrets-needed",
    "The destination's secrets are needed again"
  )(`${faults.map(({ field, reason }) => `${field} ${reason}`).join("; ")}.`, faults)
/** The same for an absent resource and for one of another org. */
export const notFound = (detail = "There is nothing here.") => problem(404, "not-found", "Not found")(detail)
/** No fault of the caller's, and final until the stream is repaired. */
const parked = ({ at }: MessageParked) =>
  problem(
    500,
    "parked",
    "What is stored of this message can't be read"
  )(
    `It is parked since ${DateTime.formatIso(at)} and nothing is sent of it. Posthaste's operator can have it tried again.`
  )
export const bodyErased = () =>
  problem(410, "body-erased", "The body was erased")("There is nothing to show; to send it again, bring a payloadJson.")
export const methodNotAllowed = (allowed: ReadonlyArray<string>) =>
  problem(405, "method-not-allowed", "Method not allowed")(`Allowed here: ${allowed.join(", ")}.`, [], {
    allow: allowed.join(", ")
  })
export const keyReused = () =>
  problem(
    409,
    "idempotency-key-reused",
    "The idempotency key belongs to another request"
  )("This key was used before, with a different request. Use a new key for a new message.")
/** Does not reveal whether the holder of the key is in the caller's org. */
export const publicKeyTaken = ({ settings }: AnyChannel) => {
  const [field, { publicKey }] = Object.entries(settings as Record<string, Setting>).find(([, one]) => one.publicKey)!
  const { slug, title, detail, reason } = publicKey!
  return problem(409, slug, title)(detail, [{ field, reason }])
}
export const tooLarge = (limitBytes: number) =>
  problem(413, "too-large", "The request is too large")(`The limit is ${limitBytes} bytes.`)
export const unsupportedMediaType = problem(415, "unsupported-media-type", "The request is not in a form we read")
const unavailable = problem(503, "unavailable", "Not available at the moment")
export const internal = (requestId: string) =>
  problem(500, "internal", "Something went wrong on our side")(`It was logged as request ${requestId}.`, [], {
    "x-request-id": requestId
  })

const commandNames: Record<CallerCommand, string> = {
  HurryMessage: "retry-now",
  CancelMessage: "cancel",
  ReplayMessage: "replay",
  DismissMessage: "dismiss"
}

const commandRefused = ({ status, allowed, wasReplayedOften }: CommandRefused) =>
  problem(
    409,
    "command-refused",
    "The message's status does not allow this"
  )(
    !allowed.includes("ReplayMessage") && (status === "FAILED" || status === "DEAD_LETTER")
      ? wasReplayedOften
        ? `The message is ${status} and was replayed as often as a message may be: resend it as a new one.`
        : `The message is ${status} and its body was erased: a replay must bring another in payloadJson.`
      : allowed.length === 0
        ? `The message is ${status}; it takes no command now.`
        : `The message is ${status}; allowed now: ${allowed.map((command) => commandNames[command]).join(", ")}.`
  )

const notInItsLane = problem(
  409,
  "not-in-its-lane",
  "The message can't be hurried"
)("Another message of its ordering key goes first, or a worker has it already.")

const replayEnded = (status: string) =>
  problem(
    409,
    "command-refused",
    "The replay's status does not allow this"
  )(`The replay is ${status}; there is nothing left to cancel.`)

const retryAfter = { "retry-after": "1" }

export type Failure =
  | Problem
  | StoreUnavailable
  | OwnershipNotKnown
  | SecretsNeeded
  | MessageNotFound
  | MessageParked
  | BodyErased
  | EventNotFound
  | CommandRefused
  | MessageBusy
  | NotInItsLane
  | LimitReached
  | ReplayNotFound
  | ReplayKeyReused
  | ReplayRejected
  | ProjectionNotFound

export const problemFor = (failure: Failure): Problem => {
  switch (failure._tag) {
    case "Problem":
      return failure
    case "MessageNotFound":
    case "EventNotFound":
    case "ReplayNotFound":
    case "ProjectionNotFound":
      return notFound()
    case "LimitReached":
      return limitReached(failure)
    case "MessageParked":
      return parked(failure)
    case "SecretsNeeded":
      return secretsNeeded(failure)
    case "BodyErased":
      return bodyErased()
    case "CommandRefused":
      return commandRefused(failure)
    case "NotInItsLane":
      return notInItsLane
    case "ReplayRejected":
      return replayEnded(failure.status)
    case "ReplayKeyReused":
      return keyReused()
    case "MessageBusy":
      return unavailable("The message is changing right now. Nothing was done; try again.", [], retryAfter)
    case "OwnershipNotKnown":
      return unavailable(`${failure.message} Nothing was stored; try again.`, [], retryAfter)
    case "StoreUnavailable":
      return unavailable(
        "The store did not answer. What was asked may or may not have been done; repeat it with the same idempotency key.",
        [],
        retryAfter
      )
  }
}
