/**
 * TLS of an endpoint: its authority, and Posthaste's client certificate, whose private key is taken out of the given
 * text and sealed.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto"
import { createSecureContext, type SecureContext } from "node:tls"
import { Redacted, Schema } from "effect"
import type { SecretField } from "../../../application/ports/Channels.ts"
import type { Secrets } from "../../../application/ports/Destinations.ts"
import { tlsTerms } from "../net/sockets.ts"

export interface Certificates {
  readonly caCertificate: string | null
  /** PEM, leaf first. */
  readonly clientCertificate: string | null
}

export const KEY = "clientKey"

const block = /-----BEGIN ([A-Z0-9 ]+)-----[A-Za-z0-9+/=\s]*-----END \1-----/g

const blocksOf = (pem: string) => [...pem.matchAll(block)].map(([text, kind]) => ({ text, kind: kind! }))

const isKey = ({ kind }: { readonly kind: string }) => kind.endsWith("PRIVATE KEY")

export const clientKey: SecretField = {
  schema: Schema.String,
  replaceable: true,
  within: {
    setting: "clientCertificate",
    takenOut: (text) => {
      const blocks = blocksOf(text)
      const key = blocks.find(isKey)
      if (key === undefined) return { text, secret: null }
      const rest = blocks.filter((each) => !isKey(each))
      return { text: rest.map((each) => `${each.text}\n`).join(""), secret: key.text }
    }
  }
}

/** Null for a text that holds anything but certificates. */
const certificatesIn = (pem: string): ReadonlyArray<X509Certificate> | null => {
  const blocks = blocksOf(pem)
  const rest = pem.replaceAll(block, "").trim()
  if (blocks.length === 0 || rest !== "" || blocks.some(({ kind }) => kind !== "CERTIFICATE")) return null
  try {
    return blocks.map(({ text }) => new X509Certificate(text))
  } catch {
    return null
  }
}

export const checkAuthority = (pem: string | null): string | null =>
  pem === null || certificatesIn(pem) !== null ? null : "must be certificates in PEM, and nothing else"

/** A handshake with RSA of 15,360 bits blocks the event loop for 150 ms, with 4,096 for 3. */
const RSA_BITS_MAX = 4_096
const curves: ReadonlySet<string | undefined> = new Set(["prime256v1", "secp384r1", "secp521r1"])
const quickKeys = `it may be RSA of up to ${RSA_BITS_MAX} bits, ECDSA on P-256, P-384 or P-521, or Ed25519`

const signsQuickly = ({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean => {
  if (type === "rsa" || type === "rsa-pss") return (details?.modulusLength ?? Number.POSITIVE_INFINITY) <= RSA_BITS_MAX
  return type === "ed25519" || (type === "ec" && curves.has(details?.namedCurve))
}

/** `key` is undefined when none was given. */
export const checkClient = (pem: string | null, key: string | undefined): string | null => {
  if (pem === null) return null
  const certificates = certificatesIn(pem)
  if (certificates === null) return "must be a certificate in PEM with its private key, and what leads to its authority"
  if (key === undefined) return "must bring its private key, in PEM behind the certificate"
  try {
    const privateKey = createPrivateKey(key)
    if (!signsQuickly(privateKey)) return `has a private key that takes long to sign with: ${quickKeys}`
    return certificates[0]!.checkPrivateKey(privateKey)
      ? null
      : "must bring the private key of its first certificate, not another"
  } catch {
    return "has a private key that can't be read; it may not have a passphrase"
  }
}

/** Null: no TLS settings of its own. A text says why they can't be used. */
export const secureContextOf = (
  { caCertificate = null, clientCertificate = null }: Partial<Certificates>,
  secrets: Secrets
): SecureContext | string | null => {
  if (caCertificate === null && clientCertificate === null) return null
  const key = secrets[KEY]
  if (clientCertificate !== null && key === undefined) return "the private key of its client certificate is missing"
  try {
    return createSecureContext({
      ...tlsTerms,
      ...(caCertificate !== null && { ca: caCertificate }),
      ...(clientCertificate !== null && { cert: clientCertificate, key: Redacted.value(key!) })
    })
  } catch {
    return "its certificates can't be used"
  }
}
