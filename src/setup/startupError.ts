/** One line for the operator about a failed start; for a bug its stack. */
import { Cause, Result } from "effect"

export const startupErrorOf = (cause: Cause.Cause<unknown>): string =>
  Result.match(Cause.findError(cause), {
    onFailure: () => `posthaste: a bug stopped it\n${Cause.pretty(cause)}`,
    onSuccess: (error) => `posthaste: ${lineOf(error)}`
  })

/** An adapter's reason is often in its cause. */
const lineOf = (error: unknown): string => {
  const said = words(error)
  switch (tagOf(error)) {
    case "ServeError":
      return `can't listen on HOST and PORT: ${said}${todo(listening, error)}`
    case "QueryFailed":
    case "StoreUnavailable":
      return `can't work with the database: ${said}${todo(database, error)}`
    default:
      return said
  }
}

const listening: Readonly<Record<string, string>> = {
  EADDRINUSE: "stop what listens there, or set another PORT (0 takes any free one)",
  EADDRNOTAVAIL: "HOST must be an address of this machine, such as 127.0.0.1 or 0.0.0.0",
  EACCES: "ports below 1024 need rights: set another PORT",
  ENOTFOUND: "HOST must be an address of this machine, such as 127.0.0.1 or 0.0.0.0"
}

const database: Readonly<Record<string, string>> = {
  ECONNREFUSED: "no PostgreSQL listens there: start it, or correct DATABASE_URL",
  ECONNRESET: "is it a PostgreSQL that DATABASE_URL names?",
  ENOTFOUND: "there is no such host: correct DATABASE_URL",
  EAI_AGAIN: "the name of the host can't be looked up now: correct DATABASE_URL, or see to the nameserver",
  ETIMEDOUT: "no answer: is the host of DATABASE_URL up, and does a firewall let this machine through?",
  EHOSTUNREACH: "no way there: is the host of DATABASE_URL up, and does a firewall let this machine through?",
  SELF_SIGNED_CERT_IN_CHAIN: "name the certificate authority with sslrootcert in DATABASE_URL",
  DEPTH_ZERO_SELF_SIGNED_CERT: "name the certificate with sslrootcert in DATABASE_URL",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "name the certificate authority with sslrootcert in DATABASE_URL",
  ERR_TLS_CERT_ALTNAME_INVALID: "DATABASE_URL must name the host as the server's certificate does",
  "28P01": "correct the user and the password in DATABASE_URL",
  "28000": "correct the user in DATABASE_URL, or let it in with pg_hba.conf",
  "3D000": "create it with createdb, or correct DATABASE_URL",
  "42501": "its user must own the schema, or be allowed to create it: grant create on database … to …",
  "53300": "it has no connection left: raise max_connections, or stop what holds them",
  "57P03": "it starts or stops: try again in a moment"
}

/** Client's message when the server was no PostgreSQL or went away. */
const TERMINATED = /Connection terminated unexpectedly/

const todo = (remedies: Readonly<Record<string, string>>, error: unknown): string => {
  for (
    let at = error;
    at instanceof Error;
    at = at.cause ?? (at instanceof AggregateError ? at.errors[0] : undefined)
  ) {
    const code = "code" in at ? String(at.code) : ""
    const remedy = remedies[code] ?? (TERMINATED.test(at.message) ? remedies["ECONNRESET"] : undefined)
    if (remedy !== undefined) return ` (${remedy})`
  }
  return ""
}

const words = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  // Such as `localhost`, refused at each address.
  if (error instanceof AggregateError && error.message === "") return error.errors.map(words).join("; ")
  const inner = error.cause === undefined ? "" : words(error.cause)
  const own = error.message === "" || error.message === inner ? "" : error.message
  return oneLine([own, inner].filter((text) => text !== "").join(": ") || error.name)
}

const oneLine = (text: string): string => text.split("\n", 1)[0]!

const tagOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "_tag" in error ? error._tag : null
