/** What a key may do. A route says which one it needs (adapters/http/server/scopes.ts). */
export const scopes = [
  /** Send messages, publish events, and cancel what was sent. */
  "messages:send",
  /** Read messages, events, their histories and attempts, dead letters, replays, dossiers and the feed, but no body. */
  "messages:read",
  /** See what was sent and what was answered, beside `messages:read`. */
  "bodies:read",
  "endpoints:read",
  /** Change destinations of every kind, their secrets, pauses and circuits, alert targets and event types. */
  "endpoints:write",
  /** Send again what was sent before. */
  "replays:write",
  "consents:write",
  "erasures:write",
  "audit:read",
  /** All of these, and the org's keys. */
  "admin"
] as const
export type Scope = (typeof scopes)[number]

const implied: Partial<Record<Scope, ReadonlyArray<Scope>>> = { "endpoints:write": ["endpoints:read"] }

/** Null are the scopes of a key without any: all but `admin`, as keys had before there were scopes. */
export type Scopes = ReadonlyArray<Scope> | null

export const allows = (given: Scopes, needed: Scope): boolean =>
  given === null
    ? needed !== "admin"
    : given.some((scope) => scope === "admin" || scope === needed || implied[scope]?.includes(needed) === true)
