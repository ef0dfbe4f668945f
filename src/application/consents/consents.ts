/**
 * The consents of a dossier. Each is its journal, folded when a message is accepted and again when an attempt starts. A
 * message without a dossier needs no consent.
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
import { fromRecorded, toRecorded } from "../../domain/consent/facts.ts"
import { type ChannelName, OrgId } from "../../domain/ids.ts"
import { appendToJournal, command, type Patience } from "../command.ts"
import { CommandedBy } from "../commandedBy.ts"
import { newMessageIds } from "../messageIds.ts"
import { Channels } from "../ports/Channels.ts"
import { StoreUnavailable } from "../ports/errors.ts"
import { type JournalFact, type JournalName, Journals } from "../ports/Journals.ts"

export interface Answer {
  readonly granted: boolean
  readonly source: string
  readonly at: DateTime.Utc
  readonly actor: string | null
}

export interface ConsentView {
  readonly dossierId: string
  readonly channel: ChannelName
  readonly answers: ReadonlyArray<Answer>
}

/** Unique for each consent: neither the name of an org nor that of a channel has a colon. */
const journalOf = ({ orgId, dossierId, channel }: ConsentOf) => `consent-${orgId}:${channel}:${dossierId}` as const

export const consentOf = (journal: JournalName): ConsentOf => {
  const [orgId, channel, ...rest] = journal.slice("consent-".length).split(":")
  return { orgId: OrgId.make(orgId!), channel: channel!, dossierId: rest.join(":") }
}

export const consentJournals = (orgId: OrgId, dossierId: string) =>
  Effect.map(Channels, (channels) => [...channels.keys()].map((channel) => journalOf({ orgId, dossierId, channel })))

const answered = (row: JournalFact) => ({ ...row, fact: Result.getOrThrow(fromRecorded(row)) as ConsentFact })

type History = ReadonlyArray<ReturnType<typeof answered>>

/** The last answer, which replaces all before it, with its application: each message of the dossier reads no more. */
const load = Effect.fnUntraced(function* (of: ConsentOf): Effect.fn.Return<History, StoreUnavailable, Journals> {
  const journals = yield* Journals
  const last = yield* journals.last(journalOf(of))
  if (last === null) return []
  const end = answered(last)
  if (end.fact.type !== "WithdrawalApplied") return [end]
  return (yield* journals.load(journalOf(of), { after: last.version - 2, limit: 2 })).map(answered)
})

export const ANSWERS_MAX = 1_000

const consentIn = (history: History): Consent => replay(history.map(({ fact }) => fact))

export const readConsent = Effect.fnUntraced(function* (of: ConsentOf) {
  const journals = yield* Journals
  const last = yield* journals.last(journalOf(of))
  const part = { after: Math.max(0, (last?.version ?? 0) - ANSWERS_MAX), limit: ANSWERS_MAX }
  const stored = last === null ? [] : yield* journals.load(journalOf(of), part)
  const view: ConsentView = {
    dossierId: of.dossierId,
    channel: of.channel,
    answers: stored
      .map(answered)
      .flatMap(({ fact, at, actor }) =>
        fact.type === "WithdrawalApplied"
          ? []
          : [{ granted: fact.type === "ConsentGranted", source: fact.source, at, actor }]
      )
  }
  return view
})

const TRIES = 10

export const commandConsent = (of: ConsentOf, consentCommand: ConsentCommand) =>
  changeConsent(of, consentCommand, { tries: TRIES }).pipe(
    Effect.catchTag("Overtaken", () =>
      Effect.fail(new StoreUnavailable({ cause: new Error("the consent changes all the time") }))
    )
  )

const changeConsent = (of: ConsentOf, consentCommand: ConsentCommand, patience: Patience, known?: History) =>
  command(
    {
      known: known ?? null,
      load: load(of),
      decide: Effect.fnUntraced(function* (history: History) {
        const before = consentIn(history)
        const facts = decide(before, of, consentCommand)
        const entry = { expected: history.at(-1)?.version ?? 0, facts: facts.map(toRecorded), at: yield* DateTime.now }
        return { entry: facts.length === 0 ? null : entry, answer: facts.reduce(evolve, before) }
      }),
      append: appendToJournal(journalOf(of))
    },
    patience
  )

export interface OpenWithdrawal {
  readonly of: ConsentOf
  readonly history: History
  readonly actor: string | null
}

/** Null when every waiting message was cancelled. */
export const openWithdrawal = Effect.fnUntraced(function* (of: ConsentOf) {
  const history = yield* load(of)
  const actor = history.findLast(({ fact }) => fact.type === "ConsentWithdrawn")?.actor ?? null
  return consentIn(history).open ? ({ of, history, actor } satisfies OpenWithdrawal) : null
})

export const closeWithdrawal = ({ of, history }: OpenWithdrawal, cancelled: number) =>
  changeConsent(of, { type: "ApplyWithdrawal", cancelled }, { tries: 1 }, history).pipe(
    Effect.catchTag("Overtaken", () => Effect.void)
  )

export const objectionTo = Effect.fnUntraced(function* (orgId: OrgId, dossierId: string, channel: ChannelName) {
  const reachesPerson = (yield* Channels).get(channel)?.reachesPerson ?? false
  return objection(reachesPerson, consentIn(yield* load({ orgId, dossierId, channel })))
})

export const cancelReason = (dossierId: string, channel: ChannelName, reason: MessageBlocked["reason"]): string =>
  reason === "consent withdrawn"
    ? `the consent of dossier ${dossierId} to ${channel} was withdrawn`
    : `there is no consent of dossier ${dossierId} to ${channel}`

interface Request {
  readonly channel: ChannelName
  readonly dossierId: string | null
}

/** In the order of the requests. Each consent is read once. */
export const objectionsTo = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<Request>) {
  if (requests.every(({ dossierId }) => dossierId === null)) return requests.map(() => null)
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

export const recordBlocked = Effect.fnUntraced(function* (blocked: ReadonlyArray<MessageBlocked>) {
  if (blocked.length === 0) return
  const [id] = yield* newMessageIds(1)
  const facts = blocked.map((fact: DossierFact) => toRecorded(fact))
  yield* (yield* Journals).append(`blocked-${id!}`, 0, facts, yield* DateTime.now, yield* CommandedBy)
})
