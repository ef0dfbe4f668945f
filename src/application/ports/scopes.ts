import { recorded as access } from "../../domain/access/facts.ts"
import { recorded as circuit } from "../../domain/circuit/facts.ts"
import { recorded as command } from "../../domain/command/facts.ts"
import { recorded as condition } from "../../domain/condition/facts.ts"
import { recorded as consent } from "../../domain/consent/facts.ts"
import type { ConfigurationFact } from "../../domain/destination/facts.ts"
import { recorded as erasure } from "../../domain/erasure/facts.ts"
import { recorded as event } from "../../domain/event/facts.ts"
import { recorded as message } from "../../domain/message/facts.ts"
import { recorded as replay } from "../../domain/replay/facts.ts"

/** The rights of a key. Each route names the one it needs (adapters/http/server/scopes.ts). */
export const scopes = [
  "messages:send",
  /** Read messages, events, their histories and attempts, dead letters, replays, dossiers and the feed, but no body. */
  "messages:read",
  /** See bodies and answers, beside `messages:read`. */
  "bodies:read",
  "endpoints:read",
  /** Change destinations of every kind, their secrets, pauses and circuits, alert targets and event types. */
  "endpoints:write",
  "replays:write",
  "consents:write",
  "erasures:write",
  "audit:read",
  /** All of these, and the org's keys. */
  "admin"
] as const
export type Scope = (typeof scopes)[number]

const implied: Partial<Record<Scope, ReadonlyArray<Scope>>> = { "endpoints:write": ["endpoints:read"] }

/** Null: a key without scopes, with all but `admin`. */
export type Scopes = ReadonlyArray<Scope> | null

export const allows = (given: Scopes, needed: Scope): boolean =>
  given === null
    ? needed !== "admin"
    : given.some((scope) => scope === "admin" || scope === needed || implied[scope]?.includes(needed) === true)

/** Facts of configuration need the scope of the routes of their thing. */
const ofConfiguration: Record<ConfigurationFact["type"], Scope> = {
  DestinationCreated: "endpoints:read",
  DestinationChanged: "endpoints:read",
  DestinationAddressed: "endpoints:read",
  DestinationSecretsChanged: "endpoints:read",
  DestinationSecretRotated: "endpoints:read",
  DestinationSecretShown: "endpoints:read",
  DestinationPaused: "endpoints:read",
  DestinationResumed: "endpoints:read",
  DestinationDisabled: "endpoints:read",
  DestinationEnabled: "endpoints:read",
  DestinationRemoved: "endpoints:read",
  KeyCreated: "admin",
  KeyRevoked: "admin",
  EventTypeCreated: "endpoints:read",
  EventTypeChanged: "endpoints:read",
  EventTypeArchived: "endpoints:read",
  OrgChanged: "audit:read"
}

const guarded: ReadonlyArray<readonly [recorded: object, Scope]> = [
  [message, "messages:read"],
  [event, "messages:read"],
  [replay, "messages:read"],
  [consent, "messages:read"],
  [command, "messages:read"],
  [circuit, "endpoints:read"],
  [condition, "endpoints:read"],
  [erasure, "erasures:write"],
  [access, "audit:read"]
]

const typeIn = (name: string): string => name.split("@", 1)[0]!

export const scopeOfType: ReadonlyMap<string, Scope> = new Map([
  ...guarded.flatMap(([recorded, scope]) => Object.keys(recorded).map((name) => [typeIn(name), scope] as const)),
  ...Object.entries(ofConfiguration)
])

/** The scope that guards a stored fact of this name. An unknown one, of a newer release, needs `admin`. */
export const scopeOfFact = (name: string): Scope => scopeOfType.get(typeIn(name)) ?? "admin"
