/**
 * Addresses and networks of callers. Only the operator's proxies are believed when they say for whom they ask
 * (`X-Forwarded-For`).
 */
import { BlockList, isIP } from "node:net"
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"

export type Networks = Pick<BlockList, "check">

/** Turns an IPv4 address of an IPv6 socket into plain IPv4. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "")

interface Network {
  readonly address: string
  readonly family: "ipv4" | "ipv6"
  /** The length of the prefix. */
  readonly bits: number
}

/** Null unless the text is a network such as 10.0.0.0/8 or 2001:db8::/32, or one address. */
const networkOf = (text: string): Network | null => {
  const [address = "", prefix, ...more] = text.split("/")
  const version = isIP(address)
  const all = version === 4 ? 32 : 128
  if (version === 0 || address.includes("%") || more.length > 0) return null
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > all)) return null
  return { address, family: version === 4 ? "ipv4" : "ipv6", bits: Number(prefix ?? all) }
}

/** Null when one of them is no network. */
export const networksOf = (given: ReadonlyArray<string>): Networks | null => {
  const networks = new BlockList()
  for (const text of given) {
    const network = networkOf(text)
    if (network === null) return null
    networks.addSubnet(network.address, network.bits, network.family)
  }
  return networks
}

/** True when all of a network lies in one of these. */
export const isWithin = (text: string, others: ReadonlyArray<string>): boolean => {
  const network = networkOf(text)
  if (network === null) return false
  return others.some((one) => {
    const other = networkOf(one)
    if (other === null || other.family !== network.family || other.bits > network.bits) return false
    return networksOf([one])!.check(network.address, network.family)
  })
}

export const isIn = (networks: Networks, address: string): boolean => {
  const one = plain(address)
  const family = isIP(one)
  return family !== 0 && networks.check(one, family === 4 ? "ipv4" : "ipv6")
}

/** The caller's address: behind trusted proxies, the last one that is none of theirs. Null when unknown. */
export const addressOf = (
  { remoteAddress, headers }: Pick<HttpServerRequest.HttpServerRequest, "remoteAddress" | "headers">,
  proxies: Networks | null
): string | null => {
  const nearest = Option.getOrNull(remoteAddress)
  if (nearest === null) return null
  if (proxies === null || !isIn(proxies, nearest)) return plain(nearest)
  const said = (headers["x-forwarded-for"] ?? "").split(",").map((each) => each.trim())
  const caller = said.toReversed().find((each) => !isIn(proxies, each))
  // A proxy may pass on text that is no address.
  return caller !== undefined && isIP(caller) !== 0 ? plain(caller) : plain(nearest)
}

/** The network of a caller: of IPv6 the first 64 bits, which one holder has. */
export const networkOfCaller = (address: string | null): string => {
  if (address === null || !address.includes(":") || /^::ffff:\d+\./i.test(address)) return address ?? ""
  const [head = "", tail] = address.split("::")
  const groups = head.split(":").filter((group) => group !== "")
  const rest = (tail ?? "").split(":").filter((group) => group !== "")
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => "0")
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(":")
}
