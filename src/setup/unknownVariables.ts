/** Finds misspelt settings, which would silently keep their defaults. */

const known = `
  ALLOWED_NETWORKS API_KEY CIRCUIT_FAILURES CIRCUIT_OPEN_MS CONCURRENCY CONNECTIONS_MAX CONNECTIONS_PER_ADDRESS
  DATA_DIR EGRESS_PROXY ENCRYPTION_KEY ENCRYPTION_KEYS ENCRYPTION_KEYS_COMMAND ENCRYPTION_KEYS_FILE
  ENCRYPTION_KEY_COMMAND ENCRYPTION_KEY_FILE FACTS_FROM LEASE_MS LOG_FORMAT LOG_LEVEL METRICS_DESTINATIONS
  METRICS_PORT OPERATOR_KEY ORG_LIMITS OPERATOR_KEY_COMMAND OPERATOR_KEY_FILE ORG RETENTION_DAYS DEAD_LETTER_DAYS
  RETENTION_MAX_DAYS ROLES SCHEMA TLS_CERT_FILE TLS_KEY_FILE TRUSTED_PROXIES URL WHATSAPP_CODES
`
  .trim()
  .split(/\s+/)
  .map((name) => `POSTHASTE_${name}`)

/** Without Posthaste's prefix. */
const others = ["AMQP_URL", "DATABASE_URL", "EVENTSTORE_URL", "HOST", "PORT", "WHATSAPP_BASE_URL"]

/** Set by Kubernetes for Services whose name begins with `posthaste`. */
const isServiceLink = /^POSTHASTE_(\w+_)?(SERVICE_(HOST|PORT\w*)|PORT(_\d+_(TCP|UDP)\w*)?)$/

const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [above, character] of [...from].entries()) {
    const next = [above + 1]
    for (let at = 0; at < to.length; at++) {
      next.push(Math.min(row[at + 1]! + 1, next[at]! + 1, row[at]! + (character === to[at] ? 0 : 1)))
    }
    row = next
  }
  return row[to.length]!
}

const CLOSE = 6

const lineAbout = (name: string): string => {
  const bare = name.toUpperCase().replace("POSTHASTE_", "")
  if (others.includes(bare)) return `${name} is not a setting and has no effect: did you mean ${bare}?`
  const [nearest] = known
    .map((each) => ({ each, away: distance(name.toUpperCase(), each) }))
    .sort((a, b) => a.away - b.away)
  const meant =
    nearest!.away <= CLOSE ? `did you mean ${nearest!.each}?` : "docs/configuration.md lists those there are"
  return `${name} is not a setting and has no effect: ${meant}`
}

/** Leaves out values, which may be secrets under wrong names. */
export const unknownVariables = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const isLinked = names.some((name) => /^POSTHASTE_(\w+_)?SERVICE_HOST$/.test(name))
  return names
    .filter((name) => /^POSTHASTE_/i.test(name) && !known.includes(name) && !(isLinked && isServiceLink.test(name)))
    .sort()
    .map((name) => lineAbout(name.replace(/[^\w.-]/g, "?").slice(0, 80)))
}
