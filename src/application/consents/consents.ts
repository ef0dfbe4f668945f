/**
 * What the people behind a dossier agreed to, and what follows from it. A consent is its journal and nothing else: it is
 * folded whenever it is asked for, when a message is accepted and again when an attempt is to start.
 *
 * A message that names no dossier asks nobody.
 */
import { DateTime, Effect, Result } from "effect"
import {
  type Consent,
  type ConsentCommand,
  type ConsentOf,
  decide,
  evolve,
  objection,
  replay
} from "../../domain/consent/consent.ts"
import type { ConsentFact, DossierFact, MessageBlocked } from "../../domain/consent/facts.ts"
import { fromRecorded, toRecorded } from "../../domain/consent/recorded.ts"
import type { ChannelName, OrgId } from "../../domain/ids.ts"
import { newMessageIds } from "../accept/messageIds.ts"
import { Actor } from "../actor.ts"
import { StoreUnavailable } from "../errors.ts"
import { Journals } from "../ports/Journals.ts"

/** One answer that was given. */
export interface Answer {
  readonly granted: boolean
  readonly source: string
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface ConsentView {
  readonly dossierId: string
  readonly channel: ChannelName
  /** Oldest first; empty when nobody ever answered. */
  readonly answers: ReadonlyArray<Answer>
}

/** No two consents have one name: neither an org nor a channel has a colon in its own. */
const journalOf = ({ orgId, dossierId, channel }: ConsentOf) => `consent-${orgId}:${channel}:${dossierId}` as const

const load = Effect.fnUntraced(function* (of: ConsentOf) {
  const stored = yield* (yield* Journals).load(journalOf(of))
  return stored.map((row) => ({ ...row, fact: Result.getOrThrow(fromRecorded(row)) as ConsentFact }))
})

const consentIn = (history: ReadonlyArray<{ readonly fact: ConsentFact }>): Consent =>
  replay(history.map(({ fact }) => fact))

export const readConsent = Effect.fnUntraced(function* (of: ConsentOf) {
  const view: ConsentView = {
    dossierId: of.dossierId,
    channel: of.channel,
    answers: (yield* load(of)).flatMap(({ fact, at, actor }) =>
      fact.type === "WithdrawalApplied"
        ? []
        : [{ granted: fact.type === "ConsentGranted", source: fact.source, at, actor }]
    )
  }
  return view
})

const TRIES = 10

/** The consent once the command has taken effect. */
export const commandConsent = Effect.fnUntraced(function* (of: ConsentOf, command: ConsentCommand) {
  const journals = yield* Journals
  const actor = yield* Actor
  for (let tries = 0; tries < TRIES; tries++) {
    const history = yield* load(of)
    const before = consentIn(history)
    const facts = decide(before, of, command)
    if (facts.length === 0) return before
    const at = yield* DateTime.now
    const result = yield* journals.append(journalOf(of), history.length, facts.map(toRecorded), at, actor)
    if (result === "Appended") return facts.reduce(evolve, before)
  }
  return yield* new StoreUnavailable({ cause: new Error("the consent changes all the time") })
})

/** A withdrawal whose messages may wait still, and who is behind it; null when there is none. */
export const openWithdrawal = Effect.fnUntraced(function* (of: ConsentOf) {
  const history = yield* load(of)
  const consent = consentIn(history)
  const actor = history.findLast(({ fact }) => fact.type === "ConsentWithdrawn")?.actor ?? null
  return consent.open ? { of, consent, version: history.length, actor } : null
})

/** Says that it is applied; when another answer came meanwhile, it says nothing. */
export const closeWithdrawal = Effect.fnUntraced(function* (
  { of, consent, version }: { readonly of: ConsentOf; readonly consent: Consent; readonly version: number },
  cancelled: number
) {
  const facts = decide(consent, of, { type: "ApplyWithdrawal", cancelled })
  yield* (yield* Journals).append(journalOf(of), version, facts.map(toRecorded), yield* DateTime.now, yield* Actor)
})

/** Why a message of this dossier may not be sent now; null when it may. */
export const objectionTo = Effect.fnUntraced(function* (orgId: OrgId, dossierId: string, channel: ChannelName) {
  return objection(channel, consentIn(yield* load({ orgId, dossierId, channel })))
})

/** What the history of a message says that was cancelled for it. */
export const cancelReason = (dossierId: string, channel: ChannelName, reason: MessageBlocked["reason"]): string =>
  reason === "consent withdrawn"
    ? `the consent of dossier ${dossierId} to ${channel} was withdrawn`
    : `there is no consent of dossier ${dossierId} to ${channel}`

interface Request {
  readonly channel: ChannelName
  readonly dossierId: string | null
}

/** In the order of the requests. Each consent is asked for once, however many requests need it. */
export const objectionsTo = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<Request>) {
  const found = new Map<string, MessageBlocked["reason"] | null>()
  const keyOf = ({ channel, dossierId }: Request) => `${channel} ${dossierId}`
  yield* Effect.forEach(
    new Map(requests.map((request) => [keyOf(request), request])),
    ([key, { dossierId, channel }]) =>
      dossierId === null
        ? Effect.void
        : Effect.map(objectionTo(orgId, dossierId, channel), (reason) => found.set(key, reason)),
    { discard: true, concurrency: 8 }
  )
  return requests.map((request) => found.get(keyOf(request)) ?? null)
})

/** Writes down which messages were refused together, in one append. */
export const recordBlocked = Effect.fnUntraced(function* (blocked: ReadonlyArray<MessageBlocked>) {
  if (blocked.length === 0) return
  const [id] = yield* newMessageIds(1)
  const facts = blocked.map((fact: DossierFact) => toRecorded(fact))
  yield* (yield* Journals).append(`blocked-${id!}`, 0, facts, yield* DateTime.now, yield* Actor)
})
