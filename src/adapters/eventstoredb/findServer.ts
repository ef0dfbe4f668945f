/**
 * Looks whether EventStoreDB is where EVENTSTORE_URL says. The client reports every fault as the same unavailability,
 * so each host is asked here in plain HTTP/2 first, then one question with user and password. A final fault ends the
 * start in one line that says what to change.
 */
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { type ClientHttp2Session, connect as connectHttp2, type SecureClientSessionOptions } from "node:http2"
import { isIP } from "node:net"
import { resolve } from "node:path"
import { createSecureContext } from "node:tls"
import { parseConnectionString } from "@eventstore/db-client/dist/Client/parseConnectionString.js"
import { Effect, Redacted, Schema } from "effect"

/** No waiting cures this. */
export class EventStoreDbFailed extends Schema.TaggedError<EventStoreDbFailed>()("EventStoreDbFailed", {
  message: Schema.String
}) {}

export type Finding =
  | { readonly type: "There" }
  | { readonly type: "Away"; readonly says: string }
  | { readonly type: "Wrong"; readonly says: string }

export interface Where {
  readonly hosts: ReadonlyArray<{ readonly address: string; readonly port: number }>
  readonly user: string | null
  /** Null: without TLS. */
  readonly tls: SecureClientSessionOptions | null
}

const ANSWERS_WITHIN_MS = 3_000

/** The connection string, with the files that it names. */
export const whereIn = (url: Redacted.Redacted): Effect.Effect<Where, EventStoreDbFailed> =>
  Effect.try({
    try: () => {
      const { hosts, tls, tlsCAFile, userCertFile, userKeyFile, defaultCredentials } = parsed(Redacted.value(url))
      const user = defaultCredentials?.username ?? null
      if (tls === false) return { hosts, user, tls: null }
      const files = {
        ...(tlsCAFile === undefined ? {} : { ca: certificateIn("tlsCAFile", tlsCAFile) }),
        ...(userCertFile === undefined ? {} : { cert: certificateIn("userCertFile", userCertFile) }),
        ...(userKeyFile === undefined ? {} : { key: fileOf("userKeyFile", userKeyFile) })
      }
      if (!isPair(files)) throw failed("userKeyFile names no private key in PEM that belongs to the userCertFile")
      return { hosts, user, tls: files }
    },
    catch: (error) => (error instanceof EventStoreDbFailed ? error : failed((error as Error).message))
  })

const failed = (problem: string) => new EventStoreDbFailed({ message: `EVENTSTORE_URL: ${problem}` })

/** The parser's error quotes the password. */
const parsed = (url: string) => {
  try {
    return parseConnectionString(url)
  } catch {
    throw failed("is no connection string of EventStoreDB, such as esdb://user:password@host:2113?tls=true")
  }
}

const fileOf = (option: string, path: string): Buffer => {
  try {
    return readFileSync(resolve(path))
  } catch (error) {
    throw failed(`${option} names ${resolve(path)}, which can't be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/** Without this check TLS would only say that the server can't be verified. */
const certificateIn = (option: string, path: string): Buffer => {
  const text = fileOf(option, path)
  try {
    new X509Certificate(text)
    return text
  } catch {
    throw failed(`${option} names ${resolve(path)}, which holds no certificate in PEM`)
  }
}

const isPair = (files: { readonly cert?: Buffer; readonly key?: Buffer }): boolean => {
  try {
    createSecureContext(files)
    return true
  } catch {
    return false
  }
}

/** One host that answers is enough. */
export const find = async ({ hosts, tls }: Where): Promise<Finding> => {
  const findings = await Promise.all(hosts.map(({ address, port }) => findingOf(address, port, tls)))
  return (
    findings.find(({ type }) => type === "There") ??
    findings.find(({ type }) => type === "Wrong") ?? {
      type: "Away",
      says: findings.flatMap((found) => ("says" in found ? found.says : [])).join("; ")
    }
  )
}

const findingOf = async (address: string, port: number, tls: SecureClientSessionOptions | null): Promise<Finding> => {
  const at = `EventStoreDB at ${address}:${port}`
  const error = await greeted(address, port, tls)
  if (error === null) return { type: "There" }
  const { code = error.message } = error
  if (tls !== null && isAboutCertificate(code)) return { type: "Wrong", says: `${at}: ${inWords(code, error.message)}` }
  if (unreachable.has(code)) return { type: "Away", says: `${at} is not there (${code})` }
  // Perhaps it speaks with TLS, or without.
  const other = await greeted(address, port, tls === null ? { rejectUnauthorized: false } : null)
  if (other === null) {
    const says =
      tls === null
        ? `${at} speaks TLS: take tls=false out of EVENTSTORE_URL`
        : `${at} speaks no TLS: give it a certificate, or add tls=false to EVENTSTORE_URL`
    return { type: "Wrong", says }
  }
  return { type: "Away", says: `${at} does not answer (${code})` }
}

const unreachable = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT"])

const isAboutCertificate = (code: string) => /CERT|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA/.test(code)

const inWords = (code: string, message: string): string => {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `its certificate is for other names. Name it in EVENTSTORE_URL as the certificate does (${message.split("\n", 1)[0]})`
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return `its certificate is not valid now (${code}): renew it, or set this machine's clock right`
  return `its certificate can't be verified (${code}): name the file of its certificate authority, as tlsCAFile=/path/ca.crt in EVENTSTORE_URL or in NODE_EXTRA_CA_CERTS`
}

/** Null when the server sent its settings, as every HTTP/2 server does first. */
const greeted = (
  address: string,
  port: number,
  tls: SecureClientSessionOptions | null
): Promise<NodeJS.ErrnoException | null> =>
  new Promise((answer) => {
    const host = isIP(address) === 6 ? `[${address}]` : address
    const options = tls === null ? {} : { ...tls, ALPNProtocols: ["h2"], servername: address }
    const session = withoutWarning(() => connectHttp2(`${tls === null ? "http" : "https"}://${host}:${port}`, options))
    const settle = (error: NodeJS.ErrnoException | null) => {
      clearTimeout(timer)
      answer(error)
      session.on("error", () => {}).destroy()
    }
    const timer = setTimeout(() => settle(because("ETIMEDOUT")), ANSWERS_WITHIN_MS)
    session.once("remoteSettings", () => settle(null))
    session.once("error", settle)
    session.once("close", () => settle(because("it closed the connection")))
  })

const because = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code })

/**
 * The client names a numeric address in TLS, of which Node warns once per process. The first time is here, unprinted.
 */
const withoutWarning = (connect: () => ClientHttp2Session): ClientHttp2Session => {
  const before = process.noDeprecation
  process.noDeprecation = true
  try {
    return connect()
  } finally {
    process.noDeprecation = before ?? false
  }
}
