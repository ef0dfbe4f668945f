/** What a key may hand out: each bound against each, so that no field is wider in the key that is made than in the one that asks. */
import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { widerThan } from "../../../../src/adapters/http/keys/apiKeys.ts"
import type { KeyTerms } from "../../../../src/application/ports/ApiKeys.ts"
import { type Scope, scopes } from "../../../../src/application/ports/scopes.ts"
import { termsOf } from "../../../contracts/keys/terms.ts"

const wider = (own: Partial<KeyTerms>, asked: Partial<KeyTerms>) =>
  widerThan(termsOf("own", { scopes: ["admin"], ...own }), termsOf("asked", asked)).map(({ field }) => field)

const at = (time: string) => DateTime.makeUnsafe(time)

describe("a key that is made by a key", () => {
  it("has no scope that the other lacks", () => {
    const subsets: ReadonlyArray<ReadonlyArray<Scope> | null> = [null, ...scopes.map((scope) => [scope])]
    for (const own of subsets) {
      for (const asked of subsets) {
        const has = (scope: Scope): boolean => {
          if (own === null) return scope !== "admin"
          if (own[0] === "admin" || own[0] === scope) return true
          return own[0] === "endpoints:write" && scope === "endpoints:read"
        }
        const wanted = asked === null || asked[0] === "admin" ? scopes : asked
        const isWider = wanted.some((scope) => !(asked === null && scope === "admin") && !has(scope))
        expect([own, asked, wider({ scopes: own }, { scopes: asked }).includes("scopes")]).toEqual([
          own,
          asked,
          isWider
        ])
      }
    }
  })

  it.each([
    [null, null, false],
    [null, "2030-01-01T00:00:00Z", false],
    ["2030-01-01T00:00:00Z", null, true],
    ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00.001Z", true],
    ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", false],
    ["2030-01-01T00:00:00Z", "2029-12-31T23:59:59Z", false]
  ])("of one that expires %s does not expire %s: %s", (own, asked, isWider) => {
    const expiry = (time: string | null) => ({ expiresAt: time === null ? null : at(time) })
    expect(wider(expiry(own), expiry(asked))).toEqual(isWider ? ["expiresAt"] : [])
  })

  it.each([
    [null, null, []],
    [null, ["0.0.0.0/0"], []],
    [["10.1.0.0/16"], null, ["networks"]],
    [["10.1.0.0/16"], ["10.1.0.0/16"], []],
    [["10.1.0.0/16"], ["10.1.2.0/24", "10.1.255.255"], []],
    [["10.1.0.0/16"], ["10.1.2.0/24", "10.0.0.0/8"], ["networks[1]"]],
    [["10.1.0.0/16"], ["10.2.0.1"], ["networks[0]"]],
    [["10.1.0.0/16"], ["0.0.0.0/0", "::/0"], ["networks[0]", "networks[1]"]],
    [["10.1.0.0/16"], ["::ffff:10.1.0.0/112", "::ffff:0:0/96"], ["networks[0]", "networks[1]"]],
    [["10.1.2.3"], ["10.1.2.3/32"], []],
    [["10.1.2.3"], ["10.1.2.2/31"], ["networks[0]"]],
    [["10.1.0.0/16", "2001:db8::/32"], ["2001:db8:1::/48"], []],
    [["10.1.0.0/16", "2001:db8::/32"], ["2001:db9::/48"], ["networks[0]"]],
    // A base address that is written with bits beyond its prefix is the network all the same.
    [["10.1.9.9/16"], ["10.1.2.3/24"], []],
    [["10.1.9.9/16"], ["10.1.2.3/15"], ["networks[0]"]]
  ])("of one for %j is not for %j", (own, asked, fields) => {
    expect(wider({ networks: own }, { networks: asked })).toEqual(fields)
  })

  it.each([
    [{}, {}, []],
    [{}, { acceptsPerSecond: 9 }, []],
    [{ acceptsPerSecond: 5 }, {}, ["limits.acceptsPerSecond"]],
    [{ acceptsPerSecond: 5 }, { acceptsPerSecond: 6 }, ["limits.acceptsPerSecond"]],
    [{ acceptsPerSecond: 5 }, { acceptsPerSecond: 5 }, []],
    [{ acceptsPerSecond: 0 }, { acceptsPerSecond: 0 }, []],
    [
      { acceptsPerSecond: 5, bytesPerSecond: 9 },
      { bytesPerSecond: 10 },
      ["limits.acceptsPerSecond", "limits.bytesPerSecond"]
    ]
  ])("of one with the limits %j has not the limits %j", (own, asked, fields) => {
    expect(wider({ limits: own }, { limits: asked })).toEqual(fields)
  })
})
