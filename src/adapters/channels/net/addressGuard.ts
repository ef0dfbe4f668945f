/**
 * The addresses that Posthaste may connect to. Whoever holds an org's key can create an endpoint, so without this guard
 * a destination could be aimed at the network that Posthaste runs in.
 *
 * Addresses are judged by their bytes, never by their spelling, and denied unless they are global unicast. An operator
 * can open private networks; the addresses where clouds hand out credentials stay closed even then. The guard can't see
 * the addresses behind an outbound proxy: a proxy must filter by itself.
 */
import { isIP, isIPv4, isIPv6 } from "node:net"
import { Result } from "effect"

/** 4 or 16 bytes, in network order. */
type Address = Uint8Array

/** A CIDR: every address that shares the first `prefix` bits. */
export interface Network {
  readonly address: Address
  readonly prefix: number
}

/** One address and port that is allowed although its network is not. */
export interface Exemption {
  readonly address: string
  readonly port: number
}

/** The addresses that the operator allows beside global unicast. */
export interface AddressRules {
  readonly allowedNetworks: ReadonlyArray<Network>
  readonly exemptions: ReadonlyArray<Exemption>
}

export interface AddressGuard {
  /** `address` is an IP address as text. Anything that is not one is forbidden. */
  readonly allows: (address: string, port: number) => boolean
}

const parseV4 = (text: string): Address | null => (isIPv4(text) ? Uint8Array.from(text.split("."), Number) : null)

const parseV6 = (text: string): Address | null => {
  // `isIPv6` accepts a zone (`fe80::1%eth0`): an address that is valid on one link only is never allowed.
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

/** Reads a comma-separated list of CIDRs or single addresses; an error says which entry is wrong. */
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

const networksOf = (...texts: ReadonlyArray<string>): ReadonlyArray<Network> => texts.map((text) => parseNetwork(text)!)

/** IPv4 that is not global unicast (IANA special-purpose registry). */
const specialV4 = networksOf(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4"
)

/** IPv6 is denied outside 2000::/3; these are the parts of it that are special: Teredo, documentation, 6to4. */
const globalV6 = networksOf("2000::/3")
const specialV6 = networksOf("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

const nat64 = networksOf("64:ff9b::/96")

/** Where an IPv6 address carries an IPv4 one: the offset of its four bytes. */
const carriers: ReadonlyArray<readonly [Network, number]> = (
  [
    ["::ffff:0:0/96", 12],
    ["::ffff:0:0:0/96", 12],
    ["::/96", 12],
    ["64:ff9b::/96", 12],
    ["64:ff9b:1::/48", 12],
    // ISATAP: under any prefix it is not global unicast, under this one it could be allowed.
    ["fe80::5efe:0:0/96", 12],
    ["2002::/16", 2]
  ] as const
).map(([text, offset]) => [parseNetwork(text)!, offset])

const embeddedV4 = (address: Address): Address | null => {
  const carrier = carriers.find(([network]) => contains(network, address))
  return carrier === undefined ? null : address.subarray(carrier[1], carrier[1] + 4)
}

/** Where clouds serve credentials to every caller that can reach them (168.63.129.16 is in a public range). */
const metadata = networksOf(
  "169.254.0.23",
  "169.254.10.10",
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "192.0.0.192",
  "100.100.100.200",
  "168.63.129.16",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
  "fe80::a9fe:a9fe"
)

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

/** The address a URL names without asking a resolver; null when it names a host that must be resolved. */
export const literalAddress = (hostname: string): string | null => {
  const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
  return isIP(host) === 0 ? null : host
}

export const portOf = (url: URL): number =>
  url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)
