/** A self-signed certificate made on the spot, so that no key has to lie in the repository. */
import { generateKeyPairSync, sign } from "node:crypto"

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

export const selfSigned = (
  host: string,
  /** Names that it is good for; true: this machine. */
  names: boolean | ReadonlyArray<string> = false,
  [from, until]: Validity = ["200101000000Z", "491231235959Z"]
): { readonly cert: string; readonly key: string } => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const content = sequence(
    ...(names !== false ? [der(0xa0, der(0x02, Buffer.from([2])))] : []),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    commonName(host),
    sequence(time(from), time(until)),
    commonName(host),
    publicKey.export({ type: "spki", format: "der" }),
    ...(names === false ? [] : [names === true ? alsoForLoopback : goodFor(...names.map(nameOf))])
  )
  const signature = der(0x03, Buffer.from([0]), sign("sha256", content, privateKey))
  const text = sequence(content, ecdsaWithSha256, signature).toString("base64")
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}(?!$)/g, "$&\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}
