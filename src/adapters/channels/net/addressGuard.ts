/**
 * Judges which addresses Posthaste may connect to, so that an org can't aim a destination at the operator's network: by
 * bytes, global unicast and networks the operator opens. Clouds' metadata addresses are never open.
 */
import { isIP, isIPv4, isIPv6 } from "node:net"
import { Result } from "effect"

/** 4 or 16 bytes, in network order. */
type Address = Uint8Array

export interface Network {
  readonly address: Address
  readonly prefix: number
}

export interface Exemption {
  readonly address: string
  readonly port: number
}

/** Addresses allowed beside global unicast. */
export interface AddressRules {
  readonly allowedNetworks: ReadonlyArray<Network>
  readonly exemptions: ReadonlyArray<Exemption>
}

export interface AddressGuard {
  /** False for text that is no IP address. */
  readonly allows: (address: string, port: number) => boolean
}

const parseV4 = (text: string): Address | null => (isIPv4(text) ? Uint8Array.from(text.split("."), Number) : null)

const parseV6 = (text: string): Address | null => {
  // `isIPv6` accepts zones (`fe80::1%eth0`), which are valid on one link only.
  if (!isIPv6(text) || text.includes("%")) return null
  const tail = text.slice(text.lastIndexOf(":") + 1)
  const v4 = parseV4(tail)
  const plain =
    v4 === null
      ? text
      : `${text.slice(0, -tail.length)}${((v4[0]! << 8) | v4[1]!).toString(16)}:${((v4[2]! << 8) | v4[3]!).toString(16)}`
  const [head = [], rest = []] = plain.split("::").map((half) => (half === "" ? [] : half.split(":")))
  const groups = [...head, ...Array<string>(8 - head.length - rest.length).fill("0"), ...rest]
  return Uint8Array.from(groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]))
}

const parseAddress = (text: string): Address | null => parseV4(text) ?? parseV6(text)

const parseNetwork = (text: string): Network | null => {
  const slash = text.indexOf("/")
  const address = parseAddress(slash === -1 ? text : text.slice(0, slash))
  if (address === null) return null
  const bits = address.length * 8
  const prefix = slash === -1 ? String(bits) : text.slice(slash + 1)
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits ? { address, prefix: Number(prefix) } : null
}

export const parseNetworks = (text: string): Result.Result<ReadonlyArray<Network>, string> => {
  const networks: Array<Network> = []
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue
    const network = parseNetwork(entry)
    if (network === null) return Result.fail(`"${entry}" is not a network like 10.0.0.0/8 or fd00::/8`)
    networks.push(network)
  }
  return Result.succeed(networks)
}

const contains = ({ address: base, prefix }: Network, address: Address): boolean => {
  if (base.length !== address.length) return false
  const whole = prefix >> 3
  for (let i = 0; i < whole; i++) if (base[i] !== address[i]) return false
  const left = prefix & 7
  return left === 0 || (base[whole]! ^ address[whole]!) >> (8 - left) === 0
}

const within = (networks: ReadonlyArray<Network>, address: Address): boolean =>
  networks.some((network) => contains(network, address))

const networksOf = (text: string): ReadonlyArray<Network> => Result.getOrThrow(parseNetworks(text))

/** IANA special-purpose registry. */
const specialV4 = networksOf(`
  0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24,
  192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/4, 240.0.0.0/4
`)

/** Special parts of 2000::/3: Teredo, documentation, 6to4. */
const globalV6 = networksOf("2000::/3")
const specialV6 = networksOf("2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20")

const nat64 = networksOf("64:ff9b::/96")

/** Networks that carry an IPv4 address, with the offset of its bytes. */
const carriers: ReadonlyArray<readonly [Network, number]> = (
  [
    ["::ffff:0:0/96", 12],
    ["::ffff:0:0:0/96", 12],
    ["::/96", 12],
    ["64:ff9b::/96", 12],
    ["64:ff9b:1::/48", 12],
    // The prefix of ISATAP that an operator could open.
    ["fe80::5efe:0:0/96", 12],
    ["2002::/16", 2]
  ] as const
).map(([text, offset]) => [parseNetwork(text)!, offset])

const embeddedV4 = (address: Address): Address | null => {
  const carrier = carriers.find(([network]) => contains(network, address))
  return carrier === undefined ? null : address.subarray(carrier[1], carrier[1] + 4)
}

/** Metadata services of clouds (168.63.129.16 is in a public range). */
const metadata = networksOf(`
  169.254.0.23, 169.254.10.10, 169.254.169.254, 169.254.170.2, 169.254.170.23, 192.0.0.192, 100.100.100.200,
  168.63.129.16, fd00:ec2::254, fd00:ec2::23, fd20:ce::254, fe80::a9fe:a9fe
`)

const isMetadata = (address: Address): boolean => {
  const inner = embeddedV4(address)
  return within(metadata, address) || (inner !== null && within(metadata, inner))
}

const isGlobal = (address: Address): boolean => {
  if (address.length === 4) return !within(specialV4, address)
  if (within(nat64, address)) return isGlobal(address.subarray(12))
  return within(globalV6, address) && !within(specialV6, address)
}

export const makeAddressGuard = (rules: AddressRules): AddressGuard => {
  const exempt = rules.exemptions.map(({ address, port }) => ({ network: parseNetwork(address), port }))
  return {
    allows: (text, port) => {
      const address = parseAddress(text)
      if (address === null) return false
      if (exempt.some((one) => one.port === port && one.network !== null && contains(one.network, address))) return true
      return !isMetadata(address) && (isGlobal(address) || within(rules.allowedNetworks, address))
    }
  }
}

/** Address in a URL's host; null for a name. */
export const literalAddress = (hostname: string): string | null => {
  const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
  return isIP(host) === 0 ? null : host
}

export const portOf = (url: URL): number =>
  url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)
