/**
 * The projections `audit` and `activity`. Both are made from the same entries: a timeline holds the entries about its
 * dossier, in other words. An entry needs its fact and the first fact of its message, nothing else.
 */
import { Effect, Result } from "effect"
import { fromRecorded as accessFact } from "../../../domain/access/facts.ts"
import {
  type AuditEntry,
  entryOfAccess,
  entryOfCircuit,
  entryOfConfiguration,
  entryOfDossier,
  entryOfErasure,
  entryOfEvent,
  entryOfMessage,
  entryOfReplay,
  type Subject
} from "../../../domain/audit/entry.ts"
import { fromRecorded as circuitFact } from "../../../domain/circuit/facts.ts"
import { activityOf } from "../../../domain/consent/activity.ts"
import { fromRecorded as dossierFact } from "../../../domain/consent/facts.ts"
import { fromRecorded as configurationFact, isConfigurationFact } from "../../../domain/destination/facts.ts"
import { fromRecorded as erasureFact } from "../../../domain/erasure/facts.ts"
import { fromRecorded as eventFact } from "../../../domain/event/facts.ts"
import { EventId, type MessageId, type OrgId } from "../../../domain/ids.ts"
import type { StoredFact } from "../../../domain/message/view.ts"
import { fromRecorded as replayFact } from "../../../domain/replay/facts.ts"
import { type AuditRow, AuditTrail } from "../../ports/AuditTrail.ts"
import type { LoggedFact } from "../../ports/EventStore.ts"
import type { Step } from "../../ports/Projections.ts"
import { type TimelineRow, Timelines, type WithdrawalState } from "../../ports/Timelines.ts"
import { LogReader } from "../LogReader.ts"
import type { Projection } from "./Projection.ts"

/** After this many entries, about a millisecond, other fibers run. */
const YIELD_EVERY = 500

const ORGS = "org-"
const UUID_LENGTH = 36

/** A journal's name is `<kind>-<id>`. Every id is a UUID but an org's, which is the name that the operator gave it. */
const subjectOf = ({ stream }: LoggedFact): Subject =>
  stream.startsWith(ORGS)
    ? { type: "org", id: stream.slice(ORGS.length) }
    : { type: stream.slice(0, -UUID_LENGTH - 1), id: stream.slice(-UUID_LENGTH) }

/** A circuit's facts do not name its org, nor do a replay's facts after the first. */
const isUnsigned = (fact: LoggedFact) => fact.stream.startsWith("circuit-") || fact.stream.startsWith("replay-")

const isAboutConsent = ({ stream }: LoggedFact) => stream.startsWith("consent-") || stream.startsWith("blocked-")

const entryOf = (
  logged: LoggedFact,
  streams: ReadonlyMap<MessageId, ReadonlyArray<StoredFact>>,
  orgs: ReadonlyMap<string, OrgId>
): AuditEntry | null => {
  const { stream, messageId, version } = logged
  if (messageId !== null) {
    const history = streams.get(messageId)
    const opening = history?.[0]?.fact
    const fact = history?.[version - 1]?.fact
    return opening?.type === "MessageQueued" && fact !== undefined ? entryOfMessage(messageId, opening, fact) : null
  }
  if (isAboutConsent(logged)) return entryOfDossier(Result.getOrThrow(dossierFact(logged)))
  const subject = subjectOf(logged)
  const { type, id } = subject
  const orgId = orgs.get(stream)
  switch (type) {
    case "access":
      return entryOfAccess(id, Result.getOrThrow(accessFact(logged)))
    case "erasure":
      return entryOfErasure(id, Result.getOrThrow(erasureFact(logged)))
    case "event":
      return entryOfEvent(EventId.make(id), Result.getOrThrow(eventFact(logged)))
    case "circuit":
      return orgId === undefined ? null : entryOfCircuit(orgId, id, Result.getOrThrow(circuitFact(logged)))
    case "replay":
      return orgId === undefined ? null : entryOfReplay(orgId, id, Result.getOrThrow(replayFact(logged)))
    default:
      // Each channel has its own prefix for the journals of its destinations.
      return isConfigurationFact(logged.name)
        ? entryOfConfiguration(subject, Result.getOrThrow(configurationFact(logged)))
        : null
  }
}

/** In the order of the facts. */
export const auditRowsOf = Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
  const log = yield* LogReader
  const streams = yield* log.streams(facts)
  const unsigned = facts.filter(isUnsigned)
  const orgs = unsigned.length === 0 ? new Map<string, OrgId>() : yield* log.orgs(unsigned)
  const rows: Array<AuditRow> = []
  for (const logged of facts) {
    const entry = entryOf(logged, streams, orgs)
    if (entry === null) continue
    const { stream, version, at, actor } = logged
    if (rows.push({ ...entry, stream, version, at, actor }) % YIELD_EVERY === 0) yield* Effect.yieldNow
  }
  return rows
})

export const audit: Projection<AuditTrail> = {
  name: "audit",
  version: 2,
  project: Effect.fnUntraced(function* (facts) {
    const rows = yield* auditRowsOf(facts)
    const { project } = yield* AuditTrail
    return (step: Step) => project(step, rows)
  }),
  clear: (limit) => Effect.flatMap(AuditTrail, (trail) => trail.clear(limit))
}

/** In the order of the facts. */
export const timelineOf = Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
  const streams = yield* (yield* LogReader).streams(facts)
  const ofDossiers = facts.filter((logged) => {
    const opening = logged.messageId === null ? undefined : streams.get(logged.messageId)?.[0]?.fact
    return opening?.type === "MessageQueued" ? opening.dossierId !== null : isAboutConsent(logged)
  })
  const rows = ofDossiers.length === 0 ? [] : yield* auditRowsOf(ofDossiers)
  return { rows: rows.flatMap(timelineRow), withdrawals: ofDossiers.flatMap(withdrawalState) }
})

export const activity: Projection<Timelines> = {
  name: "activity",
  version: 1,
  project: Effect.fnUntraced(function* (facts) {
    const { rows, withdrawals } = yield* timelineOf(facts)
    const { project } = yield* Timelines
    return (step: Step) => project(step, rows, withdrawals)
  }),
  clear: (limit) => Effect.flatMap(Timelines, (timelines) => timelines.clear(limit))
}

const timelineRow = (row: AuditRow): ReadonlyArray<TimelineRow> => {
  const { stream, version, at, actor, orgId, dossierId, channel, subject, details } = row
  const name = activityOf(row)
  if (name === null || dossierId === null || channel === null) return []
  const messageId = subject.type === "message" ? (subject.id as MessageId) : null
  return [{ stream, version, orgId, dossierId, activity: name, at, channel, messageId, actor, details }]
}

const withdrawalState = (logged: LoggedFact): ReadonlyArray<WithdrawalState> => {
  if (!logged.stream.startsWith("consent-")) return []
  const { type, orgId, dossierId, channel } = Result.getOrThrow(dossierFact(logged))
  return [{ of: { orgId, dossierId, channel }, version: logged.version, open: type === "ConsentWithdrawn" }]
}
