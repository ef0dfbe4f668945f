/**
 * Making, changing, removing and testing the alert targets of an org. Each gets a destination of its own, with the
 * same id: a webhook endpoint, or an HTTP target that knows the key. That is where its messages, circuit and dead
 * letters are found; removing it removes the target.
 *
 * A destination that was made just before a crash, and has no target yet, is an ordinary one that nobody uses.
 */
import { DateTime, Effect, Redacted, Result } from "effect"
import { type AlertEvent, alertTypes, type Severity, testAlerts } from "../../domain/alert/alert.ts"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import { newMessageIds } from "../accept/messageIds.ts"
import type { Fault, StoreUnavailable } from "../errors.ts"
import { AlertFormats } from "../ports/AlertFormats.ts"
import { type AlertTarget, type AlertTargetSettings, AlertTargets } from "../ports/AlertTargets.ts"
import { EndpointPolicy } from "../ports/EndpointPolicy.ts"
import { Endpoints } from "../ports/Endpoints.ts"
import { HttpTargetPolicy } from "../ports/HttpTargetPolicy.ts"
import { HttpTargets } from "../ports/HttpTargets.ts"
import { raiseAlerts } from "./raiseAlerts.ts"

export interface AlertTargetView extends AlertTarget {
  /** Null when its destination was removed a moment ago. */
  readonly url: string | null
}

/** What can be said about a target of either type. */
export interface AlertWishes {
  /** Null asks for all that can be told. */
  readonly events?: ReadonlyArray<AlertEvent> | null
  readonly oldestDueSeconds?: number | null
  readonly description?: string | null
}

export interface WebhookAlertDraft extends AlertWishes {
  readonly type: "webhook"
  readonly url: string
  readonly secret?: Redacted.Redacted
}

export interface PagerDutyAlertDraft extends AlertWishes {
  readonly type: "pagerduty"
  readonly routingKey: Redacted.Redacted
  readonly url?: string | null
  readonly severity?: Severity | null
}

export interface AlertChange extends AlertWishes {
  /** Null goes back to the usual address, where there is one. */
  readonly url?: string | null
  readonly routingKey?: Redacted.Redacted
  readonly severity?: Severity | null
}

type Judged<A> = Result.Result<A, ReadonlyArray<Fault>>

export const createAlertTarget = Effect.fnUntraced(function* (
  orgId: OrgId,
  draft: WebhookAlertDraft | PagerDutyAlertDraft
): Effect.fn.Return<
  Judged<{ readonly target: AlertTargetView; readonly secret: Redacted.Redacted | null }>,
  StoreUnavailable,
  AlertTargets | AlertFormats | Endpoints | EndpointPolicy | HttpTargets | HttpTargetPolicy
> {
  const settings = settingsOf(draft, "severity" in draft ? (draft.severity ?? null) : null)
  const targets = yield* AlertTargets
  if (draft.type === "webhook") {
    const policy = yield* EndpointPolicy
    const faults = [
      ...faultsOf(settings),
      ...fault("url", policy.checkUrl(draft.url)),
      ...fault("secret", draft.secret === undefined ? null : policy.checkSecret(draft.secret))
    ]
    if (faults.length > 0) return Result.fail(faults)
    const secret = draft.secret ?? policy.generateSecret()
    const { id, url } = yield* (yield* Endpoints).create(orgId, endpointOf(draft), secret)
    return Result.succeed({ target: { ...(yield* targets.add(orgId, id, "webhook", settings)), url }, secret })
  }
  const { pagerduty } = yield* AlertFormats
  const address = draft.url ?? pagerduty.url
  const faults = [...faultsOf(settings), ...(yield* keyedFaults(address, draft.routingKey))]
  if (faults.length > 0) return Result.fail(faults)
  const { id, url } = yield* (yield* HttpTargets).create(
    orgId,
    pagerduty.targetOf(address),
    pagerduty.secretsOf(draft.routingKey)
  )
  return Result.succeed({ target: { ...(yield* targets.add(orgId, id, "pagerduty", settings)), url }, secret: null })
})

/** Null when the org has no such target. */
export const changeAlertTarget = Effect.fnUntraced(function* (
  orgId: OrgId,
  id: DestinationId,
  { url, routingKey, ...wishes }: AlertChange
): Effect.fn.Return<
  Judged<AlertTargetView> | null,
  StoreUnavailable,
  AlertTargets | AlertFormats | Endpoints | EndpointPolicy | HttpTargets | HttpTargetPolicy
> {
  const targets = yield* AlertTargets
  const before = yield* targets.get(orgId, id)
  if (before === null) return null
  const settings = { ...before, ...changeOf(wishes, before) }
  const faults = faultsOf(settings)
  if (before.type === "webhook") {
    const foreign = [
      ...(routingKey === undefined ? [] : fault("routingKey", "is not a field of a webhook alert target")),
      ...(wishes.severity === undefined ? [] : fault("severity", "is not a field of a webhook alert target")),
      ...(url === null ? fault("url", "is required") : []),
      ...(typeof url === "string" ? fault("url", (yield* EndpointPolicy).checkUrl(url)) : [])
    ]
    if (faults.length + foreign.length > 0) return Result.fail([...faults, ...foreign])
    if (typeof url === "string") yield* (yield* Endpoints).update(orgId, id, { url })
  } else {
    const { pagerduty } = yield* AlertFormats
    const address = url === undefined ? null : (url ?? pagerduty.url)
    const wrong = yield* keyedFaults(address ?? pagerduty.url, routingKey ?? null)
    if (faults.length + wrong.length > 0) return Result.fail([...faults, ...wrong])
    if (address !== null || routingKey !== undefined) {
      const secrets = routingKey === undefined ? {} : pagerduty.secretsOf(routingKey)
      yield* (yield* HttpTargets).update(orgId, id, address === null ? {} : { url: address }, secrets)
    }
  }
  const after = yield* targets.update(orgId, id, changeOf(wishes, before))
  return after === null ? null : Result.succeed(yield* withUrl(after))
})

export const readAlertTarget = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const target = yield* (yield* AlertTargets).get(orgId, id)
  return target === null ? null : yield* withUrl(target)
})

export const listAlertTargets = Effect.fnUntraced(function* (
  orgId: OrgId,
  page: { readonly cursor: string | null; readonly limit: number }
) {
  const { items, nextCursor } = yield* (yield* AlertTargets).list(orgId, page)
  return { items: yield* Effect.forEach(items, withUrl, { concurrency: 8 }), nextCursor }
})

/** False when the org has no such target. */
export const removeAlertTarget = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const target = yield* (yield* AlertTargets).get(orgId, id)
  if (target === null) return false
  const destinations = target.type === "webhook" ? yield* Endpoints : yield* HttpTargets
  return yield* destinations.remove(orgId, id)
})

/** The messages that were sent; null when the org has no such target. */
export const testAlertTarget = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  const target = yield* (yield* AlertTargets).get(orgId, id)
  if (target === null) return null
  const [nonce] = yield* newMessageIds(1)
  const alerts = testAlerts({ orgId, target: id, at: yield* DateTime.now }, nonce!)
  return yield* raiseAlerts(alerts.map((alert) => ({ target, alert, origin: `test:${nonce}:${alert.action}` })))
})

const withUrl = Effect.fnUntraced(function* (target: AlertTarget) {
  const { orgId, id } = target
  const destination =
    target.type === "webhook" ? yield* (yield* Endpoints).get(orgId, id) : yield* (yield* HttpTargets).get(orgId, id)
  return { ...target, url: destination?.url ?? null }
})

/** Nothing but alerts: an event that is sent to all endpoints is not for it. */
const endpointOf = ({ url, description }: WebhookAlertDraft) => ({
  url,
  eventTypes: alertTypes,
  description: description ?? "Alerts",
  signature: "standard" as const,
  retry: null,
  rateLimit: null,
  maxInFlight: 4,
  timeoutMs: 15_000,
  onDeadLetter: "skip" as const,
  headers: {}
})

const settingsOf = (wishes: AlertWishes, severity: Severity | null): AlertTargetSettings => {
  const oldestDueSeconds = wishes.oldestDueSeconds ?? null
  return {
    events: wishes.events ?? allEvents(oldestDueSeconds),
    oldestDueSeconds,
    severity,
    description: wishes.description ?? null
  }
}

const allEvents = (oldestDueSeconds: number | null): ReadonlyArray<AlertEvent> =>
  oldestDueSeconds === null ? ["circuit", "deadLetter"] : ["circuit", "deadLetter", "oldestDue"]

/** Only what was named. The limit switches its event on and off where events are not named with it. */
const changeOf = (
  { events, oldestDueSeconds, ...others }: Omit<AlertChange, "url" | "routingKey">,
  before: AlertTargetSettings
): Partial<AlertTargetSettings> => {
  const limit = oldestDueSeconds === undefined ? before.oldestDueSeconds : oldestDueSeconds
  const kept = before.events.filter((event) => event !== "oldestDue")
  const following = limit === null ? kept : [...kept, "oldestDue" as const]
  return {
    ...others,
    ...(oldestDueSeconds === undefined ? {} : { oldestDueSeconds, events: following }),
    ...(events === undefined ? {} : { events: events ?? allEvents(limit) })
  }
}

const fault = (field: string, reason: string | null): ReadonlyArray<Fault> =>
  reason === null ? [] : [{ field, reason }]

const faultsOf = ({ events, oldestDueSeconds }: AlertTargetSettings): ReadonlyArray<Fault> =>
  events.includes("oldestDue") === (oldestDueSeconds !== null)
    ? []
    : oldestDueSeconds === null
      ? fault("oldestDueSeconds", "is required with the event oldestDue")
      : fault("events", "must hold oldestDue where oldestDueSeconds is given")

const keyedFaults = Effect.fnUntraced(function* (url: string, key: Redacted.Redacted | null) {
  const { pagerduty } = yield* AlertFormats
  const target = pagerduty.targetOf(url)
  const secretNames = Object.keys(pagerduty.secretsOf(Redacted.make("")))
  return [
    ...(yield* HttpTargetPolicy).faultsOf({ ...target, secretNames }),
    ...fault("routingKey", key === null ? null : pagerduty.checkKey(Redacted.value(key)))
  ]
})
