import { describe, expect, it } from "vitest"
import { generateKey } from "../../../../src/adapters/http/keys/apiKey.ts"
import { makeWrongKeys } from "../../../../src/adapters/http/server/wrongKeys.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { limitIn, start } from "../served.ts"

const limits = { perAddress: { burst: 3, perSecond: 1 }, all: { burst: 10, perSecond: 5 } }
const at = "192.0.2.1"
const acme = OrgId.make("acme")

describe("wrong keys", () => {
  it("of one address are looked up so often and no more, until time has passed", () => {
    const keys = makeWrongKeys(limits)
    for (let tried = 0; tried < 3; tried++) {
      expect(keys.usedUp(at, "a", 0)).toBe(null)
      keys.wrong(at, "a", 0)
    }
    expect(keys.usedUp(at, "a", 0)).toEqual({ allowed: 3, afterSeconds: 1 })
    expect(keys.usedUp("192.0.2.2", "a", 0)).toBe(null)
    expect(keys.usedUp(at, "a", 1_500)).toBe(null)
    keys.wrong(at, "a", 1_500)
    keys.wrong(at, "a", 1_500)
    keys.wrong(at, "a", 1_500)
    // What they say, to the second, is when the next may be looked up.
    expect(keys.usedUp(at, "a", 1_500)).toEqual({ allowed: 3, afterSeconds: 2 })
    expect([2_500, 3_500].map((now) => keys.usedUp(at, "a", now)?.afterSeconds)).toEqual([1, undefined])
  })

  it("of many addresses are bounded together, and a network of IPv6 is one address", () => {
    const keys = makeWrongKeys(limits)
    for (let host = 0; host < 10; host++) keys.wrong(`198.51.100.${host}`, "b", 0)
    expect(keys.usedUp("203.0.113.1", "a", 0)).toEqual({ allowed: 10, afterSeconds: 1 })
    const six = makeWrongKeys(limits)
    for (const end of ["1", "2", "ffff:1"]) six.wrong(`2001:db8:1:2::${end}`, "b", 0)
    expect(six.usedUp("2001:db8:1:2:3:4:5:6", "a", 0)).not.toBe(null)
    expect(six.usedUp("2001:db8:1:3::1", "a", 0)).toBe(null)
  })

  it("are remembered of so many addresses, and those that were wrong longest ago are forgotten first", () => {
    const once = { burst: 1, perSecond: 0 }
    const keys = makeWrongKeys({ perAddress: once, all: { burst: 100_000, perSecond: 0 } })
    const address = (n: number) => `10.0.${n >> 8}.${n & 255}`
    for (let n = 0; n < 9_999; n++) keys.wrong(address(n), "a", 0)
    for (const n of [0, 9_999, 10_000]) keys.wrong(address(n), "a", 0)
    expect([0, 1, 2, 10_000].map((n) => keys.usedUp(address(n), "a", 0) === null)).toEqual([false, true, false, false])
  })

  it("do not shut out a key that was good lately, whoever else is at its address", () => {
    const keys = makeWrongKeys(limits)
    keys.good("mine", acme, 0)
    for (let tried = 0; tried < 5; tried++) keys.wrong(at, "a", 0)
    expect(keys.usedUp(at, "mine", 0)).toBe(null)
    expect(keys.usedUp(at, "new", 0)).not.toBe(null)
    expect(keys.usedUp(at, "mine", 600_001)).toBe(null)
  })

  it("tell whose a key is that was good lately, until it is wrong", () => {
    const keys = makeWrongKeys(limits)
    expect(keys.orgOf("mine", 0)).toBe(undefined)
    keys.good("mine", acme, 0)
    keys.good("the operator's", null, 0)
    expect([keys.orgOf("mine", 0), keys.orgOf("the operator's", 0), keys.orgOf("mine", 600_001)]).toEqual([
      acme,
      null,
      undefined
    ])
    keys.wrong(at, "mine", 1)
    expect(keys.orgOf("mine", 1)).toBe(undefined)
  })

  it("are answered 429 when there were too many, and the others' requests go on", async () => {
    const { call, makeKey } = await start()
    const key = await makeKey("acme")
    expect((await call("GET", "/api/v1/outbound/stats", { key, org: null })).status).toBe(200)
    const statuses = new Map<number, number>()
    const tryOne = async () => {
      const answer = await call("GET", "/api/v1/outbound/stats", { key: generateKey(), org: null })
      const { status } = answer
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status !== 429) return
      const { after, reset, ...said } = limitIn(answer)
      expect(said).toEqual({ limit: "500", remaining: "0" })
      expect([Number(after) >= 1, after]).toEqual([true, reset])
    }
    // Many at once: what is used up comes back with time.
    for (let tried = 0; tried < 5_000 && !statuses.has(429); tried += 50)
      await Promise.all(Array.from({ length: 50 }, tryOne))
    expect([...statuses.keys()].toSorted()).toEqual([401, 429])
    expect((await call("GET", "/api/v1/outbound/stats", { key, org: null })).status).toBe(200)
    expect((await call("GET", "/api/v1/outbound/stats")).status).toBe(200)
  })
})
