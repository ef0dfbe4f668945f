/** Finds misspelt settings, which would silently keep their defaults. */

const known = [
  "POSTHASTE_ALLOWED_NETWORKS",
  "POSTHASTE_API_KEY",
  "POSTHASTE_CIRCUIT_FAILURES",
  "POSTHASTE_CIRCUIT_OPEN_MS",
  "POSTHASTE_CONCURRENCY",
  "POSTHASTE_CONNECTIONS_MAX",
  "POSTHASTE_CONNECTIONS_PER_ADDRESS",
  "POSTHASTE_DATA_DIR",
  "POSTHASTE_EGRESS_PROXY",
  "POSTHASTE_ENCRYPTION_KEY",
  "POSTHASTE_ENCRYPTION_KEYS",
  "POSTHASTE_ENCRYPTION_KEYS_COMMAND",
  "POSTHASTE_ENCRYPTION_KEYS_FILE",
  "POSTHASTE_ENCRYPTION_KEY_COMMAND",
  "POSTHASTE_ENCRYPTION_KEY_FILE",
  "POSTHASTE_FACTS_FROM",
  "POSTHASTE_LEASE_MS",
  "POSTHASTE_LOG_FORMAT",
  "POSTHASTE_LOG_LEVEL",
  "POSTHASTE_METRICS_DESTINATIONS",
  "POSTHASTE_METRICS_PORT",
  "POSTHASTE_OPERATOR_KEY",
  "POSTHASTE_ORG_LIMITS",
  "POSTHASTE_OPERATOR_KEY_COMMAND",
  "POSTHASTE_OPERATOR_KEY_FILE",
  "POSTHASTE_ORG",
  "POSTHASTE_RETENTION_DAYS",
  "POSTHASTE_DEAD_LETTER_DAYS",
  "POSTHASTE_RETENTION_MAX_DAYS",
  "POSTHASTE_ROLES",
  "POSTHASTE_SCHEMA",
  "POSTHASTE_SEAL_BODIES",
  "POSTHASTE_TLS_CERT_FILE",
  "POSTHASTE_TLS_KEY_FILE",
  "POSTHASTE_TRUSTED_PROXIES",
  "POSTHASTE_URL",
  "POSTHASTE_WHATSAPP_CODES"
]

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
