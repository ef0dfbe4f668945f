/**
 * Creates, changes, removes and tests the alert targets of an org: destinations with a list of events to alert about, a
 * webhook endpoint or an HTTP target with the key of the alerting service.
 */
import { DateTime, Effect, Redacted, Result } from "effect"
import { type AlertEvent, type Severity, testAlerts } from "../../domain/alert/alert.ts"
import { maskedUrl } from "../../domain/delivery/exchange.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { changeDestination, createDestination } from "../destinations/destinations.ts"
import { newMessageIds } from "../messageIds.ts"
import { LimitReached } from "../orgs/admission.ts"
import { LATER_SECONDS } from "../orgs/buckets.ts"
import { AlertFormats } from "../ports/AlertFormats.ts"
import { Channels } from "../ports/Channels.ts"
import { type Alerting, type AlertTargetType, type Destination, Destinations } from "../ports/Destinations.ts"
import { type Fault, type PageRequest, SecretsNeeded } from "../ports/errors.ts"
import { sendAlerts } from "./sendAlerts.ts"

export interface AlertTarget extends Alerting, Pick<Destination, "id" | "orgId" | "createdAt" | "updatedAt"> {
  readonly url: string
}

const alertTargetOf = ({ id, orgId, settings, alerting, createdAt, updatedAt }: Destination): AlertTarget | null =>
  alerting === null
    ? null
    : { ...alerting, id, orgId, url: maskedUrl((settings as { url?: string }).url ?? ""), createdAt, updatedAt }

const onlyTargets = (destinations: ReadonlyArray<Destination>): ReadonlyArray<AlertTarget> =>
  destinations.flatMap((destination) => alertTargetOf(destination) ?? [])

export const allAlertTargets = Effect.gen(function* () {
  return onlyTargets(yield* (yield* Destinations).alertTargets)
})

export interface AlertTargetRequest {
  readonly events?: ReadonlyArray<AlertEvent> | null
  readonly oldestDueSeconds?: number | null
  readonly description?: string | null
  readonly severity?: Severity | null
  /** Null asks for the usual address, if any. */
  readonly url?: string | null
  readonly secret?: Redacted.Redacted
  readonly routingKey?: Redacted.Redacted
}

/**
 * The most of an org. Each alert goes to all of them: with 1,500, the dead letters of 20 endpoints were 30,000 messages
 * at once, and delayed the alerts of other orgs.
 */
export const ALERT_TARGETS_MAX = 20

/** Targets that are made at the same moment may be more. */
const another = Effect.fnUntraced(function* (orgId: OrgId) {
  const { items } = yield* listAlertTargets(orgId, { cursor: null, limit: ALERT_TARGETS_MAX })
  if (items.length < ALERT_TARGETS_MAX) return
  return yield* new LimitReached({
    of: "org",
    limit: "alertTargets",
    allowed: ALERT_TARGETS_MAX,
    afterSeconds: LATER_SECONDS
  })
})

export const createAlertTarget = Effect.fnUntraced(function* (
  orgId: OrgId,
  type: AlertTargetType,
  request: AlertTargetRequest
) {
  yield* another(orgId)
  const format = (yield* AlertFormats)[type]
  const limit = request.oldestDueSeconds ?? null
  const alerting: Alerting = {
    type,
    events: request.events ?? allEvents(limit),
    oldestDueSeconds: limit,
    severity: request.severity ?? null,
    description: request.description ?? null
  }
  const given = request[format.secret.field]
  const secret = given === undefined ? null : Redacted.value(given)
  const url = request.url ?? format.url ?? ""
  const made = yield* createDestination(
    yield* channelOf(format.channel),
    orgId,
    format.settingsOf(url, alerting.description),
    secret === null ? {} : { [format.secret.name]: secret },
    { alerting, faults: [...faultsOf(alerting), ...secretFaults(format.secret, secret)] }
  )
  return Result.map(Result.mapError(made, asOfTarget), ({ destination, shownOnce }) => ({
    target: alertTargetOf(destination as Destination)!,
    secret: shownOnce[format.secret.name] ?? null
  }))
})

export const changeAlertTarget = Effect.fnUntraced(function* (
  orgId: OrgId,
  id: DestinationId,
  { url, secret: _, routingKey, ...request }: AlertTargetRequest
) {
  const before = yield* readAlertTarget(orgId, id)
  if (before === null) return null
  const format = (yield* AlertFormats)[before.type]
  const foreign = (field: string) => ({ field, reason: `is not a field of a ${before.type} alert target` })
  const hasKey = format.secret.field === "routingKey"
  const key = routingKey === undefined ? null : Redacted.value(routingKey)
  const address = url === null ? format.url : url
  const alerting = changeOf(request, before)
  const faults = [
    ...faultsOf({ ...before, ...alerting }),
    ...(key === null ? [] : hasKey ? secretFaults(format.secret, key) : [foreign("routingKey")]),
    ...(request.severity === undefined || format.hasSeverity ? [] : [foreign("severity")]),
    ...(address === null ? [{ field: "url", reason: "is required" }] : [])
  ]
  const changed = yield* changeDestination(
    yield* channelOf(format.channel),
    orgId,
    id,
    address == null ? {} : { url: address },
    key === null || !hasKey ? {} : { [format.secret.name]: key },
    { alerting, faults }
  ).pipe(Effect.mapError((error) => (error._tag === "SecretsNeeded" ? neededBy(format.secret)(error) : error)))
  if (changed === null) return null
  return Result.map(Result.mapError(changed, asOfTarget), (destination) => alertTargetOf(destination)!)
})

export const readAlertTarget = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const destination = yield* (yield* Destinations).get(orgId, id)
  return destination === null ? null : alertTargetOf(destination)
})

export const listAlertTargets = Effect.fnUntraced(function* (orgId: OrgId, page: PageRequest) {
  const { items, nextCursor } = yield* (yield* Destinations).list(orgId, { alerting: true }, page)
  return { items: onlyTargets(items), nextCursor }
})

export const removeAlertTarget = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const target = yield* readAlertTarget(orgId, id)
  if (target === null) return false
  const channel = yield* channelOf((yield* AlertFormats)[target.type].channel)
  return yield* (yield* Destinations).remove(channel, orgId, id)
})

export const testAlertTarget = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const target = yield* readAlertTarget(orgId, id)
  if (target === null) return null
  const [nonce] = yield* newMessageIds(1)
  const alerts = testAlerts({ orgId, target: id, at: yield* DateTime.now }, nonce!)
  return yield* sendAlerts(alerts.map((alert) => ({ target, alert, origin: `test:${nonce}:${alert.action}` })))
})

const channelOf = Effect.fnUntraced(function* (name: string) {
  const channel = (yield* Channels).get(name)
  return channel ?? (yield* Effect.die(new Error(`alerts are sent over the channel ${name}, and there is none`)))
})

const allEvents = (oldestDueSeconds: number | null): ReadonlyArray<AlertEvent> => {
  const events = ["circuit", "deadLetter", "disabled", "commandRefused", "broker"] as const
  return oldestDueSeconds === null ? events : [...events, "oldestDue"]
}

/** Only the named fields. Without named events the limit switches its own event on and off. */
const changeOf = (
  {
    events,
    oldestDueSeconds,
    ...others
  }: Pick<AlertTargetRequest, "events" | "oldestDueSeconds" | "description" | "severity">,
  before: Alerting
): Partial<Alerting> => {
  const limit = oldestDueSeconds === undefined ? before.oldestDueSeconds : oldestDueSeconds
  const kept = before.events.filter((event) => event !== "oldestDue")
  const following = limit === null ? kept : [...kept, "oldestDue" as const]
  return {
    ...others,
    ...(oldestDueSeconds === undefined ? {} : { oldestDueSeconds, events: following }),
    ...(events === undefined ? {} : { events: events ?? allEvents(limit) })
  }
}

const faultsOf = ({ events, oldestDueSeconds }: Alerting): ReadonlyArray<Fault> => {
  if (events.includes("oldestDue") === (oldestDueSeconds !== null)) return []
  return oldestDueSeconds === null
    ? [{ field: "oldestDueSeconds", reason: "is required with the event oldestDue" }]
    : [{ field: "events", reason: "must hold oldestDue where oldestDueSeconds is given" }]
}

const secretFaults = (
  { field, check }: { readonly field: string; readonly check: (value: string) => string | null },
  value: string | null
): ReadonlyArray<Fault> => {
  const reason = value === null ? null : check(value)
  return reason === null ? [] : [{ field, reason }]
}

const neededBy =
  ({ field, name }: { readonly field: string; readonly name: string }) =>
  ({ faults }: SecretsNeeded) =>
    new SecretsNeeded({
      faults: faults.map((fault) => (fault.field === `secrets.${name}` ? { ...fault, field } : fault))
    })

/** A target has no secrets by name: its one secret is judged under its own field. */
const asOfTarget = (faults: ReadonlyArray<Fault>): ReadonlyArray<Fault> =>
  faults.filter(({ field }) => !field.startsWith("secrets."))
