/**
 * Where a request comes from, and networks of callers. A proxy of the operator's says for whom it asks (`X-Forwarded-For`); nobody
 * else is believed.
 */
import { BlockList, isIP } from "node:net"
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"

export type Networks = Pick<BlockList, "check">

/** An address of IPv4 that came in over a socket of IPv6 is the same address. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "")

/** Null when one of them is no network such as 10.0.0.0/8 or 2001:db8::/32, or a single address. */
export const networksOf = (given: ReadonlyArray<string>): Networks | null => {
  const networks = new BlockList()
  for (const text of given) {
    const [address = "", prefix, ...more] = text.split("/")
    const family = isIP(address)
    const bits = family === 4 ? 32 : 128
    if (family === 0 || address.includes("%") || more.length > 0) return null
    if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits)) return null
    networks.addSubnet(address, Number(prefix ?? bits), family === 4 ? "ipv4" : "ipv6")
  }
  return networks
}

export const isIn = (networks: Networks, address: string): boolean => {
  const one = plain(address)
  const family = isIP(one)
  return family !== 0 && networks.check(one, family === 4 ? "ipv4" : "ipv6")
}

/** The address of the caller: behind trusted proxies, the last one that none of them has. Null when it is not known. */
export const addressOf = (
  { remoteAddress, headers }: Pick<HttpServerRequest.HttpServerRequest, "remoteAddress" | "headers">,
  proxies: Networks | null
): string | null => {
  const nearest = Option.getOrNull(remoteAddress)
  if (nearest === null) return null
  if (proxies === null || !isIn(proxies, nearest)) return plain(nearest)
  const said = (headers["x-forwarded-for"] ?? "").split(",").map((each) => each.trim())
  const caller = said.toReversed().find((each) => !isIn(proxies, each))
  // What a proxy passed on unread is no address.
  return caller !== undefined && isIP(caller) !== 0 ? plain(caller) : plain(nearest)
}
