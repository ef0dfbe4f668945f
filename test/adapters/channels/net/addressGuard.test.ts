import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import {
  type Exemption,
  literalAddress,
  makeAddressGuard,
  parseNetworks,
  portOf
} from "../../../../src/adapters/channels/net/addressGuard.ts"

const guardWith = (networks: string, exemptions: ReadonlyArray<Exemption> = []) =>
  makeAddressGuard({ allowedNetworks: Result.getOrThrow(parseNetworks(networks)), exemptions })

const strict = guardWith("")
const allows = (address: string) => strict.allows(address, 443)

/** How a URL names an address: the guard judges what is left after the URL was parsed. */
const allowsUrl = (text: string) => {
  const url = new URL(text)
  const address = literalAddress(url.hostname)
  return address !== null && strict.allows(address, portOf(url))
}

describe("an address", () => {
  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2001:200::1",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
    "3ffe::1",
    "64:ff9b::808:808",
    "64:ff9b::8.8.8.8"
  ])("%s is global and may be called", (address) => expect(allows(address)).toBe(true))

  it.each([
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::127.0.0.1",
    "::808:808",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:1ff:ffff::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "4000::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456:789a::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2606:4700::1111%eth0"
  ])("%s is private, reserved or unclear and may not", (address) => expect(allows(address)).toBe(false))

  it.each([
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f.1",
    "1.2.3",
    "1.2.3.4.5",
    "08.8.8.8",
    "[::1]",
    ":::",
    "1::2::3"
  ])("%j is no address, so it may not", (text) => expect(allows(text)).toBe(false))

  it.each([
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://①②⑦.0.0.1/",
    "http://0/",
    "http://017700000001/",
    "http://0xA9FEA9FE/",
    "http://169.254.43518/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[0:0:0:0:0:ffff:7f00:0001]/",
    "http://[::1]:8080/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[FE80::1]/"
  ])("spelled %s may not be called", (url) => {
    expect(literalAddress(new URL(url).hostname)).not.toBeNull()
    expect(allowsUrl(url)).toBe(false)
  })

  it.each(["http://134744072/", "https://0x08.8.8.8/", "http://[2606:4700:4700:0:0::1111]/"])("spelled %s may", (url) =>
    expect(allowsUrl(url)).toBe(true)
  )
})

const hex = (high: number, low: number) => ((high << 8) | low).toString(16)
/** Every way to carry an IPv4 address inside an IPv6 one. */
const embeddings: ReadonlyArray<(a: number, b: number, c: number, d: number) => string> = [
  (a, b, c, d) => `::ffff:${a}.${b}.${c}.${d}`,
  (a, b, c, d) => `::ffff:${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `::${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `::ffff:0:${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `64:ff9b::${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `64:ff9b:1::${hex(a, b)}:${hex(c, d)}`,
  (a, b, c, d) => `2002:${hex(a, b)}:${hex(c, d)}::1`,
  (a, b, c, d) => `2001:0:${hex(a, b)}:${hex(c, d)}::1`
]

describe("every spelling of an address", () => {
  const octet = fc.integer({ min: 0, max: 255 })
  const blocked = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127), octet, octet, octet),
    fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
    fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
    fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet)
  )

  it("of a forbidden IPv4 address is forbidden, whatever it is wrapped in", () => {
    fc.assert(
      fc.property(blocked, ([a, b, c, d]) => {
        expect(allows(`${a}.${b}.${c}.${d}`)).toBe(false)
        for (const embed of embeddings) expect(allows(embed(a, b, c, d))).toBe(false)
      })
    )
  })

  it("of a global IPv4 address is allowed plain and through NAT64 only", () => {
    fc.assert(
      fc.property(fc.constantFrom(1, 8, 23, 52, 93, 151, 185, 222), octet, octet, octet, (a, b, c, d) => {
        expect(allows(`${a}.${b}.${c}.${d}`)).toBe(true)
        const wrapped = embeddings.map((embed) => allows(embed(a, b, c, d)))
        expect(wrapped).toEqual([false, false, false, false, true, false, false, false])
      })
    )
  })

  it("of a global IPv6 address is allowed, long or short", () => {
    const group = fc.integer({ min: 0, max: 0xffff })
    fc.assert(
      fc.property(fc.integer({ min: 0x2400, max: 0x2fff }), fc.tuple(group, group, group), (first, [x, y, z]) => {
        const long = [first, x, y, 0, 0, 0, 0, z].map((n) => n.toString(16).padStart(4, "0")).join(":")
        const short = new URL(`http://[${long}]/`).hostname.slice(1, -1)
        expect([allows(long), allows(short), allows(short.toUpperCase())]).toEqual([true, true, true])
      })
    )
  })
})

describe("a network the operator opens", () => {
  it("may be called, and nothing beside it", () => {
    const guard = guardWith("10.1.0.0/16, fd12::/16 ,192.168.7.7")
    for (const open of ["10.1.0.1", "10.1.255.255", "fd12::1", "192.168.7.7", "8.8.8.8"]) {
      expect(guard.allows(open, 80)).toBe(true)
    }
    for (const closed of ["10.0.255.255", "10.2.0.0", "fd13::1", "192.168.7.8", "127.0.0.1", "::ffff:10.1.0.1"]) {
      expect(guard.allows(closed, 80)).toBe(false)
    }
  })

  it("is cut at any bit", () => {
    fc.assert(
      fc.property(fc.integer({ min: 9, max: 32 }), fc.nat(0xffffff), fc.nat(0xffffff), (prefix, base, other) => {
        const dotted = (n: number) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
        const same = base >>> (32 - prefix) === other >>> (32 - prefix)
        expect(guardWith(`${dotted(base)}/${prefix}`).allows(dotted(other), 80)).toBe(same)
      })
    )
  })

  it.each(["0.0.0.0/0,::/0", "169.254.0.0/16,100.64.0.0/10,168.63.129.16,fd00::/8,::/0,64:ff9b::/32,2002::/16"])(
    "never opens the addresses where clouds hand out credentials (%s)",
    (networks) => {
      const guard = guardWith(networks)
      for (const closed of [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "2002:a9fe:a9fe::1"
      ]) {
        expect([closed, guard.allows(closed, 80)]).toEqual([closed, false])
      }
      expect(guard.allows("169.254.1.1", 80)).toBe(true)
    }
  )

  it.each([
    "10.0.0.0/33",
    "10.0.0/8",
    "fd00::/129",
    "localhost",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "x",
    "1.2.3.4/1e1"
  ])("is not %j, and the error quotes it", (text) => {
    const result = parseNetworks(`192.168.0.0/16,${text}`)
    expect(Result.isFailure(result) && result.failure).toContain(`"${text}"`)
  })

  it("may be none at all", () => expect(Result.getOrThrow(parseNetworks(" , "))).toEqual([]))
})

describe("an exemption", () => {
  it("opens one address at one port", () => {
    const guard = guardWith("", [{ address: "127.0.0.1", port: 8099 }])
    expect(guard.allows("127.0.0.1", 8099)).toBe(true)
    expect(guard.allows("127.0.0.1", 8098)).toBe(false)
    expect(guard.allows("127.0.0.2", 8099)).toBe(false)
    expect(guard.allows("::ffff:127.0.0.1", 8099)).toBe(false)
  })
})
