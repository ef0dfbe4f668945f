import { Option } from "effect"
import { describe, expect, it } from "vitest"
import { comesFrom } from "../../../../src/adapters/http/server/auth.ts"
import { addressOf, isIn, networksOf } from "../../../../src/adapters/http/server/callers.ts"

const proxies = networksOf(["10.0.0.0/8", "::1"])!
const from = (remote: string | null, forwarded?: string, trusted: typeof proxies | null = proxies) =>
  addressOf(
    {
      remoteAddress: Option.fromNullOr(remote),
      headers: (forwarded === undefined ? {} : { "x-forwarded-for": forwarded }) as never
    },
    trusted
  )

describe("the address of a caller", () => {
  it.each([
    ["of the connection", from("192.0.2.1"), "192.0.2.1"],
    ["of IPv4 over IPv6", from("::ffff:192.0.2.1"), "192.0.2.1"],
    ["not what a stranger says", from("192.0.2.1", "198.51.100.7"), "192.0.2.1"],
    ["not what anybody says without proxies", from("10.0.0.1", "198.51.100.7", null), "10.0.0.1"],
    ["what a proxy says", from("10.0.0.1", "198.51.100.7"), "198.51.100.7"],
    ["what the nearest proxies say", from("::1", "1.1.1.1, 198.51.100.7, 10.2.3.4"), "198.51.100.7"],
    ["the proxy's where it says nothing", from("10.0.0.1"), "10.0.0.1"],
    ["the proxy's where it says nonsense", from("10.0.0.1", "unknown"), "10.0.0.1"],
    ["not known", from(null), null]
  ])("is %s", (_, found, expected) => expect(found).toBe(expected))
})

describe("a key with networks", () => {
  const bound = { networks: ["10.1.0.0/16", "2001:db8::/32"] }

  it.each([
    ["10.1.255.255", true],
    ["2001:db8::7", true],
    ["10.2.0.0", false],
    ["2001:db9::7", false],
    ["", false],
    [null, false]
  ] as const)("may be used from %j: %s", (address, may) => expect(comesFrom(bound, address)).toBe(may))

  it("may be used from nowhere where its networks can't be read, and one without from anywhere", () => {
    expect(comesFrom({ networks: ["10.0.0.0/33"] }, "10.0.0.1")).toBe(false)
    expect([comesFrom({ networks: null }, null), comesFrom({ networks: null }, "10.0.0.1")]).toEqual([true, true])
  })
})

describe("networks of callers", () => {
  it.each(["", "10.0.0.0/33", "10.0.0/8", "::/129", "fe80::1%eth0/64", "10.0.0.0/8/8", "10.0.0.0/-1", "localhost"])(
    "%j is none",
    (text) => expect(networksOf([text])).toBeNull()
  )

  it("hold addresses of both families", () => {
    const networks = networksOf(["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"])!
    const inside = ["192.0.2.255", "::ffff:192.0.2.1", "2001:db8:1::1", "198.51.100.7"]
    expect(inside.filter((each) => !isIn(networks, each))).toEqual([])
    expect(["192.0.3.0", "2001:db9::1", "198.51.100.8", "", "x"].filter((each) => isIn(networks, each))).toEqual([])
  })
})
