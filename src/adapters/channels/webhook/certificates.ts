/**
 * The TLS of an endpoint of its own: the certificate by which Posthaste shows who it is (mTLS), and the authority that
 * the endpoint's certificate must be signed by. A private key comes in one text with its certificate, is taken out and
 * sealed like every secret, and is never shown.
 */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { createSecureContext, type SecureContext } from "node:tls"
import { Redacted, Schema } from "effect"
import type { SecretField } from "../../../application/ports/Channels.ts"
import type { Secrets } from "../../../application/ports/Destinations.ts"

export interface Certificates {
  /** PEM; null: those that Node trusts. */
  readonly caCertificate: string | null
  /** PEM, the certificate first and then what leads to its authority; null: none is shown. */
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

/** The certificates of a text that holds nothing else; null when it is something else. */
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

/** `key`: as given; undefined: not given now. */
export const checkClient = (pem: string | null, key: string | undefined): string | null => {
  if (pem === null) return null
  const certificates = certificatesIn(pem)
  if (certificates === null) return "must be a certificate in PEM with its private key, and what leads to its authority"
  if (key === undefined) return "must bring its private key, in PEM behind the certificate"
  try {
    return certificates[0]!.checkPrivateKey(createPrivateKey(key))
      ? null
      : "must bring the private key of its first certificate, not another"
  } catch {
    return "has a private key that can't be read; it may not have a passphrase"
  }
}

/** Null: nothing of its own. A text says why there can be none. */
export const secureContextOf = (
  { caCertificate = null, clientCertificate = null }: Partial<Certificates>,
  secrets: Secrets
): SecureContext | string | null => {
  if (caCertificate === null && clientCertificate === null) return null
  const key = secrets[KEY]
  if (clientCertificate !== null && key === undefined) return "the private key of its client certificate is missing"
  try {
    return createSecureContext({
      ...(caCertificate !== null && { ca: caCertificate }),
      ...(clientCertificate !== null && { cert: clientCertificate, key: Redacted.value(key!) })
    })
  } catch {
    return "its certificates can't be used"
  }
}
