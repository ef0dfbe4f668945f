/**
 * The API's certificate from files, read again when a file changes: new connections use it without a restart. A new one
 * that can't be used only goes to the log.
 */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { isIP } from "node:net"
import { createSecureContext } from "node:tls"
import { Effect, Redacted, Result, type Scope } from "effect"
import type { Certificate, Tls } from "../adapters/http/server/makeServer.ts"

export interface CertificateFiles {
  readonly certificate: string
  readonly key: string
}

export const CERTIFICATE_FILE = "POSTHASTE_TLS_CERT_FILE"
export const KEY_FILE = "POSTHASTE_TLS_KEY_FILE"

export interface Read extends Certificate {
  readonly leaf: X509Certificate
}

interface Fault {
  readonly variable: string
  readonly problem: string
}

type Judged = Result.Result<Read, Fault>

const wrong = (variable: string, problem: string) => Result.fail({ variable, problem })

const unread = (variable: string, error: unknown) => wrong(variable, `can't be read: ${(error as Error).message}`)

/** Answers it, or a reason that reveals nothing of the key. */
export const readCertificate = (files: CertificateFiles, now: Date): Judged => {
  const text = (variable: string, path: string) =>
    Result.orElse(
      Result.try(() => readFileSync(path, "utf8")),
      (error) => unread(variable, error)
    )
  return Result.gen(function* () {
    const certificate = yield* text(CERTIFICATE_FILE, files.certificate)
    const key = yield* text(KEY_FILE, files.key)
    return yield* judged(certificate, key, now)
  })
}

const judged = (certificate: string, key: string, now: Date): Judged => {
  // Node reads the first of a chain, the server's own.
  const leaf = Result.getOrNull(Result.try(() => new X509Certificate(certificate)))
  if (leaf === null) return wrong(CERTIFICATE_FILE, "holds no certificate in PEM")
  const privateKey = Result.getOrNull(Result.try(() => createPrivateKey(key)))
  if (privateKey === null) return wrong(KEY_FILE, "holds no private key in PEM without a passphrase")
  if (!leaf.checkPrivateKey(privateKey)) {
    return wrong(KEY_FILE, `is not the key of the first certificate of ${CERTIFICATE_FILE}`)
  }
  if (leaf.validToDate < now) {
    return wrong(CERTIFICATE_FILE, `holds a certificate that expired at ${leaf.validToDate.toISOString()}`)
  }
  if (leaf.validFromDate > now) {
    return wrong(CERTIFICATE_FILE, `holds a certificate that is not valid before ${leaf.validFromDate.toISOString()}`)
  }
  const usable = Result.try(() => createSecureContext({ cert: certificate, key, minVersion: "TLSv1.2" }))
  return Result.isFailure(usable)
    ? wrong(CERTIFICATE_FILE, "holds certificates that can't be used together")
    : Result.succeed({ certificate, key: Redacted.make(key), leaf })
}

const EVERY = "1 second"
const DAY_MS = 86_400_000
const SOON_MS = 14 * DAY_MS

/** Logs the coming end at the start, and daily from two weeks before it. */
export const keptRenewed = Effect.fnUntraced(function* (
  files: CertificateFiles,
  first: Read
): Effect.fn.Return<Tls, never, Scope.Scope> {
  let current = first
  let refused: string | null = null
  let saidAt = 0
  const listeners = new Set<(renewed: Certificate) => void>()
  const expiry = () => ({ expiresAt: current.leaf.validToDate.toISOString() })

  const readNow = Effect.promise(async (): Promise<Judged> => {
    const [certificate, key] = await Promise.allSettled([
      readFile(files.certificate, "utf8"),
      readFile(files.key, "utf8")
    ])
    if (certificate.status === "rejected") return unread(CERTIFICATE_FILE, certificate.reason)
    if (key.status === "rejected") return unread(KEY_FILE, key.reason)
    const isSame = certificate.value === current.certificate && key.value === Redacted.value(current.key)
    return isSame ? Result.succeed(current) : judged(certificate.value, key.value, new Date())
  })

  const look = Effect.gen(function* () {
    const read = yield* readNow
    if (Result.isFailure(read)) {
      const { variable, problem } = read.failure
      const line = `${variable} ${problem}`
      // The two files change one after the other: the next look may fit.
      if (line === refused) return
      refused = line
      yield* Effect.logWarning(`the certificate of the API stays as it was: ${line}`)
      return
    }
    refused = null
    if (read.success !== current) {
      current = read.success
      saidAt = 0
      for (const renew of listeners) renew(current)
      yield* Effect.logInfo("the certificate of the API was renewed").pipe(Effect.annotateLogs(expiry()))
    }
    const now = Date.now()
    if (current.leaf.validToDate.getTime() - now > SOON_MS || now - saidAt < DAY_MS) return
    saidAt = now
    yield* Effect.logWarning("the certificate of the API expires soon").pipe(Effect.annotateLogs(expiry()))
  })
  yield* look.pipe(Effect.delay(EVERY), Effect.forever, Effect.forkScoped)
  return {
    certificate: first,
    whenRenewed: (renew) => {
      // May have been renewed before the server was made.
      if (current !== first) renew(current)
      listeners.add(renew)
    }
  }
})

/** Host name for URLs: `callable` if the certificate covers it, else its first name. */
export const nameIn = (leaf: X509Certificate, callable: string): string => {
  const isGood = isIP(callable) === 0 ? leaf.checkHost(callable) : leaf.checkIP(callable)
  if (isGood !== undefined) return callable
  const names = Array.from((leaf.subjectAltName ?? "").matchAll(/DNS:([^,\s]+)/g), ([, name]) => name!)
  return names.find((name) => !name.includes("*")) ?? callable
}
