/** Questions for names, put to a nameserver of the test: none holds up another, and what is answered is kept as long as it says. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Address, makeResolver } from "../../../../src/adapters/channels/net/resolver.ts"
import { nameserver, type Zone } from "./nameserver.ts"

const files = (hosts: string, resolvConf = "") => {
  const directory = mkdtempSync(join(tmpdir(), "posthaste-names-"))
  writeFileSync(join(directory, "hosts"), hosts)
  writeFileSync(join(directory, "resolv.conf"), resolvConf)
  return { hosts: join(directory, "hosts"), resolvConf: join(directory, "resolv.conf") }
}

const resolving = (options: Parameters<typeof makeResolver>[0]) => {
  // The nameserver shares this process: on a busy machine its answers take their time.
  const patient = { deadlineMs: 100_000, tryMs: 50_000, otherFamilyMs: 100_000 }
  const resolve = makeResolver({ ...files(""), ...patient, ...options })
  return (name: string) =>
    new Promise<ReadonlyArray<Address> | string>((settle) =>
      resolve(name, (error, addresses) =>
        settle(error === null ? addresses : ((error as NodeJS.ErrnoException).code ?? error.message))
      )
    )
}

describe("a name", () => {
  it("has the addresses of both families, IPv4 first", async () => {
    const { servers } = await nameserver({
      "shop.test": { a: ["192.0.2.1", "192.0.2.2"], aaaa: "20010db8000000000000000000000001" }
    })
    expect(await resolving({ servers })("Shop.test.")).toEqual([
      { address: "192.0.2.1", family: 4 },
      { address: "192.0.2.2", family: 4 },
      { address: "2001:db8::1", family: 6 }
    ])
  })

  it("is not held up by others whose nameserver never answers", async () => {
    const silent = Array.from({ length: 60 }, (_, n) => `tarpit${n}.test`)
    const { servers } = await nameserver({
      "good.test": { a: ["192.0.2.1"] },
      ...Object.fromEntries(silent.map((name) => [name, "silent" as const]))
    })
    const resolve = resolving({ servers })
    let stuck = silent.length
    for (const name of silent) {
      void resolve(name).then(() => {
        stuck -= 1
      })
    }
    expect(await resolve("good.test")).toEqual([{ address: "192.0.2.1", family: 4 }])
    // It did not wait for any of them.
    expect(stuck).toBe(silent.length)
  })

  it("that no nameserver answers for fails after a while", async () => {
    const { servers } = await nameserver({ "tarpit.test": "silent" })
    expect(await resolving({ servers, deadlineMs: 50 })("tarpit.test")).toMatch(/no nameserver|ETIMEOUT/)
  })

  it("that does not exist fails at once, and so does one that no nameserver may be asked for", async () => {
    const { servers, asked } = await nameserver({ "broken.test": "fails" })
    const resolve = resolving({ servers })
    expect(await resolve("nobody.test")).toBe("ENOTFOUND")
    expect(await resolve("broken.test")).toBe("ESERVFAIL")
    expect(await resolve("receiver.invalid")).toBe("ENOTFOUND")
    expect(asked.filter((question) => question.endsWith("invalid"))).toEqual([])
  })

  it("is asked for once by all who want it at the same time, and again when its TTL is over", async () => {
    const { servers, asked } = await nameserver({
      "shop.test": { a: ["192.0.2.1"], ttl: 20 },
      "long.test": { a: ["192.0.2.1"], ttl: 86_400 },
      "short.test": { a: ["192.0.2.1"], ttl: 0 }
    })
    let now = 0
    const resolve = resolving({ servers, now: () => now })
    const times = (name: string) => asked.filter((question) => question === `A ${name}`).length
    await Promise.all(Array.from({ length: 50 }, () => resolve("shop.test")))
    expect(times("shop.test")).toBe(1)
    now = 19_999
    await resolve("SHOP.test")
    expect(times("shop.test")).toBe(1)
    now = 20_000
    await resolve("shop.test")
    expect(times("shop.test")).toBe(2)
    // Within bounds: a name that changes is followed within a minute, and one without a TTL costs no question per request.
    await resolve("long.test")
    await resolve("short.test")
    now += 999
    await resolve("short.test")
    expect(times("short.test")).toBe(1)
    now += 60_001
    await resolve("long.test")
    expect(times("long.test")).toBe(2)
  })

  it("is kept no longer than the shorter TTL of its two families", async () => {
    const { servers, asked } = await nameserver({
      "shop.test": (_, type) => ({
        a: ["192.0.2.1"],
        aaaa: "20010db8000000000000000000000001",
        ttl: type === "A" ? 40 : 10
      })
    })
    let now = 0
    const resolve = resolving({ servers, now: () => now })
    for (const at of [0, 9_999, 10_000]) {
      now = at
      expect(await resolve("shop.test")).toHaveLength(2)
    }
    expect(asked.filter((question) => question === "A shop.test")).toHaveLength(2)
  })

  it("has the addresses of one family a moment after they came, when nobody answers for the other", async () => {
    const { servers } = await nameserver({ "shop.test": (_, type) => (type === "A" ? { a: ["192.0.2.1"] } : "silent") })
    const never = 3_600_000
    const resolve = resolving({ servers, deadlineMs: never, tryMs: never, otherFamilyMs: 10 })
    expect(await resolve("shop.test")).toEqual([{ address: "192.0.2.1", family: 4 }])
  })

  it("that failed is asked for again a moment later", async () => {
    const zone: Record<string, Zone[string]> = {}
    const { servers, asked } = await nameserver(zone)
    let now = 0
    const resolve = resolving({ servers, now: () => now })
    expect(await resolve("new.test")).toBe("ENOTFOUND")
    expect(await resolve("new.test")).toBe("ENOTFOUND")
    expect(asked).toHaveLength(2)
    zone["new.test"] = { a: ["192.0.2.9"] }
    now = 1_000
    expect(await resolve("new.test")).toEqual([{ address: "192.0.2.9", family: 4 }])
  })

  it("in the hosts file is that, whatever its letters' case, and asks nobody", async () => {
    const { servers, asked } = await nameserver({})
    const resolve = resolving({
      servers,
      ...files("127.0.0.1 localhost # us\n\n::1 localhost\n192.0.2.5 Printer printer.lan\nnonsense here\n")
    })
    expect(await resolve("LOCALHOST")).toEqual([
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 }
    ])
    expect(await resolve("printer.lan")).toEqual([{ address: "192.0.2.5", family: 4 }])
    expect(asked).toEqual([])
  })

  it("is completed as the system's settings say", async () => {
    const zone = { "orders.shop.svc.test": { a: ["192.0.2.7"] }, "api.example.test": { a: ["192.0.2.8"] } }
    const { servers, asked } = await nameserver(zone)
    const settings = files("", "nameserver 192.0.2.53\nsearch shop.svc.test svc.test\noptions timeout:1 ndots:2\n")
    const resolve = resolving({ servers, ...settings })
    expect(await resolve("orders")).toEqual([{ address: "192.0.2.7", family: 4 }])
    expect(await resolve("orders.shop")).toEqual([{ address: "192.0.2.7", family: 4 }])
    expect(await resolve("api.example.test")).toEqual([{ address: "192.0.2.8", family: 4 }])
    expect(asked.filter((question) => question.startsWith("A "))).toEqual([
      "A orders.shop.svc.test",
      "A orders.shop.shop.svc.test",
      "A orders.shop.svc.test",
      "A api.example.test"
    ])
  })

  it("is not asked for in another form when the nameserver fails, or when its time is over", async () => {
    const settings = files("", "search shop.svc.test\n")
    let now = 0
    const hour = 3_600_000
    const { servers, asked } = await nameserver({
      "broken.shop.svc.test": "fails",
      broken: { a: ["192.0.2.1"] },
      "slow.shop.svc.test": () => {
        now = hour
        return undefined
      },
      slow: "silent"
    })
    const resolve = resolving({ servers, ...settings, now: () => now, deadlineMs: hour, tryMs: hour })
    expect(await resolve("broken")).toBe("ESERVFAIL")
    expect(asked).not.toContain("A broken")
    expect(await resolve("slow")).toMatch(/no nameserver/)
  })
})
