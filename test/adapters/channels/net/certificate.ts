/** Certificates made on the spot, so that no key has to lie in the repository. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto"

const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: ReadonlyArray<Uint8Array>) => der(0x30, ...parts)
const ecdsaWithSha256 = sequence(der(0x06, Buffer.from("2a8648ce3d040302", "hex")))
const commonName = (name: string) =>
  sequence(der(0x31, sequence(der(0x06, Buffer.from("550403", "hex")), der(0x0c, Buffer.from(name)))))
const time = (text: string) => der(0x17, Buffer.from(text))

const goodFor = (...names: ReadonlyArray<Uint8Array>) =>
  der(0xa3, sequence(sequence(der(0x06, Buffer.from("551d11", "hex")), der(0x04, sequence(...names)))))
const nameOf = (name: string) => der(0x82, Buffer.from(name))
/** For a name of this machine, and for its loopback address where that is wished. */
const alsoForLoopback = goodFor(nameOf("localhost"), der(0x87, Buffer.from([127, 0, 0, 1])))

/** In the form of the century's last two digits of the year, month, day, hour, minute, second. */
export type Validity = readonly [from: string, until: string]

interface Named {
  readonly subject: string
  readonly issuer: string
  readonly signedWith: KeyObject
  readonly publicKey: KeyObject
  /** Its one extension; null: a certificate of the first version. */
  readonly extension: Uint8Array | null
  readonly validity?: Validity
}

const certificate = ({ subject, issuer, signedWith, publicKey, extension, validity }: Named): string => {
  const [from, until] = validity ?? ["200101000000Z", "491231235959Z"]
  const content = sequence(
    ...(extension === null ? [] : [der(0xa0, der(0x02, Buffer.from([2])))]),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    commonName(issuer),
    sequence(time(from), time(until)),
    commonName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    ...(extension === null ? [] : [extension])
  )
  const signature = der(0x03, Buffer.from([0]), sign("sha256", content, signedWith))
  const text = sequence(content, ecdsaWithSha256, signature).toString("base64")
  return `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}(?!$)/g, "$&\n")}\n-----END CERTIFICATE-----\n`
}

const newPair = () => generateKeyPairSync("ec", { namedCurve: "P-256" })
const textOf = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString()

/** Of the names that a certificate is good for; true: this machine. */
type Names = boolean | ReadonlyArray<string>
const extensionOf = (names: Names) =>
  names === false ? null : names === true ? alsoForLoopback : goodFor(...names.map(nameOf))

export const selfSigned = (
  host: string,
  names: Names = false,
  validity?: Validity
): { readonly cert: string; readonly key: string } => {
  const { privateKey, publicKey } = newPair()
  const own = { subject: host, issuer: host, signedWith: privateKey, publicKey, extension: extensionOf(names) }
  return { cert: certificate({ ...own, ...(validity && { validity }) }), key: textOf(privateKey) }
}

/** May sign others. */
const authority = der(
  0xa3,
  sequence(
    sequence(
      der(0x06, Buffer.from("551d13", "hex")),
      der(0x01, Buffer.from([0xff])),
      der(0x04, sequence(der(0x01, Buffer.from([0xff]))))
    )
  )
)

/** A certificate as authorities give them: signed by one between it and the root that callers trust. */
export const signed = (
  host: string,
  names: Names
): { readonly cert: string; readonly between: string; readonly root: string; readonly key: string } => {
  const [root, between, own] = [newPair(), newPair(), newPair()]
  const [rootName, betweenName] = [`root of ${host}`, `between ${host} and its root`]
  const byRoot = { issuer: rootName, signedWith: root.privateKey, extension: authority }
  return {
    cert: certificate({
      ...{ subject: host, issuer: betweenName, signedWith: between.privateKey, publicKey: own.publicKey },
      extension: extensionOf(names)
    }),
    between: certificate({ ...byRoot, subject: betweenName, publicKey: between.publicKey }),
    root: certificate({ ...byRoot, subject: rootName, publicKey: root.publicKey }),
    key: textOf(own.privateKey)
  }
}
