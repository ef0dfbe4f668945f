/** Bounds of one asker's requests: how often, how many under way, how many bytes, how many wrong keys. */
import { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Deferred, Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import { generateKey, hashOf, storedHash } from "../../../../src/adapters/http/server/apiKey.ts"
import { ActingOrg } from "../../../../src/adapters/http/server/auth.ts"
import { asReader } from "../../../../src/adapters/http/server/listPages.ts"
import {
  layer,
  limitsDefault,
  makeQuotas,
  type QuotaLimits,
  Quotas
} from "../../../../src/adapters/http/server/quotas.ts"
import { limits as bodies } from "../../../../src/adapters/http/server/requestBody.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { start } from "../served.ts"

const few: QuotaLimits = {
  ...limitsDefault,
  ofOrg: { perSecond: 100 },
  ofAddress: { perSecond: 100 },
  underWayMax: 2,
  bytesMax: 1_000,
  waitingMax: 2
}
const ACME = "acmes-key"
const acme = OrgId.make("acme")
const hashOfKey = (key: string) => storedHash(hashOf(key))

interface Asked {
  readonly key?: string
  readonly address?: string
  readonly bytes?: number
  readonly url?: string
}

/** Asks as Node's server would. `begun` says which requests began, in their order. */
const askersOf = (quotas: Quotas["Service"]) => {
  quotas.goodKey(hashOfKey(ACME), acme)
  const begun: Array<string> = []
  const ask = (name: string, { key, address = "192.0.2.1", bytes, url = "/" }: Asked = {}) => {
    const response = new EventEmitter() as ServerResponse
    const answered = { status: 0, headers: {} as Record<string, string> }
    Object.assign(response, {
      destroyed: false,
      writeHead: (status: number, headers: Record<string, string>) => Object.assign(answered, { status, headers }),
      end: () => {}
    })
    const headers = {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(bytes !== undefined && { "content-length": String(bytes) })
    }
    const request = { method: "POST", url, headers, socket: { remoteAddress: address } }
    quotas.enter(request as unknown as IncomingMessage, response, () => begun.push(name))
    return {
      answered,
      end: () => response.emit("close"),
      hangUp: () => {
        Object.assign(response, { destroyed: true })
        response.emit("close")
      }
    }
  }
  return { quotas, begun, ask }
}
const askers = (limits: QuotaLimits, now = () => 0) => askersOf(makeQuotas(null, now, limits))

describe("requests of one asker", () => {
  it("under way are so many, and the others wait in their order", () => {
    const { ask, begun } = askers(few)
    const [one, two] = [ask("1", { key: ACME }), ask("2", { key: ACME, address: "192.0.2.9" })]
    ask("3", { key: ACME })
    const four = ask("4", { key: ACME })
    expect(begun).toEqual(["1", "2"])
    one.end()
    one.end()
    expect(begun).toEqual(["1", "2", "3"])
    four.hangUp()
    two.end()
    expect(begun).toEqual(["1", "2", "3"])
  })

  it("leave other askers theirs: an org without its key, another address, and a network of IPv6 is one", () => {
    const { ask, begun } = askers(few)
    for (const name of ["1", "2", "3"]) ask(name, { key: ACME })
    ask("stranger")
    ask("other key", { key: "unknown", address: "192.0.2.2" })
    for (const [name, end] of [
      ["a", "1"],
      ["b", "2"],
      ["c", "ffff:1"]
    ] as const) {
      ask(name, { address: `2001:db8:1:2::${end}` })
    }
    expect(begun).toEqual(["1", "2", "stranger", "other key", "a", "b"])
  })

  it("are refused when as many wait as may, and told when to come again", () => {
    const { ask } = askers(few)
    const all = Array.from({ length: 5 }, (_, n) => ask(String(n), { key: ACME }).answered)
    expect(all.map(({ status }) => status)).toEqual([0, 0, 0, 0, 429])
    expect(all.at(-1)!.headers).toMatchObject({ "retry-after": "1", "content-type": "application/problem+json" })
  })

  it("have so many bytes under way, one alone any number; a batch and what is not announced weigh the most", () => {
    const limits = { ...few, underWayMax: 10, bytesMax: 2 * bodies.batch }
    const { ask, begun } = askers(limits)
    const first = ask("first", { key: ACME, bytes: 100, url: "/api/v1/events/batch" })
    ask("second", { key: ACME, bytes: bodies.batch - 1 })
    ask("too much", { key: ACME, bytes: 100, url: "/api/v1/events/batch" })
    ask("behind it", { key: ACME, bytes: 2 })
    expect(begun).toEqual(["first", "second"])
    first.end()
    expect(begun).toEqual(["first", "second", "too much"])
    const { ask: alone, begun: large } = askers({ ...few, bytesMax: 1 })
    alone("large", { bytes: 10_000 })
    expect(large).toEqual(["large"])
  })

  it("are so many in a second, and one more is told how long to wait", () => {
    let now = 0
    const limits = { ...few, ofAddress: { perSecond: 2, burst: 3 } }
    const { ask } = askers(limits, () => now)
    const status = () => {
      const asked = ask("")
      asked.end()
      return asked.answered.status
    }
    expect([status(), status(), status(), status()]).toEqual([0, 0, 0, 429])
    now = 500
    expect([status(), status()]).toEqual([0, 429])
  })
})

describe("a key that was good lately", () => {
  it("stands for its org for ten minutes, until it is wrong", () => {
    let now = 0
    const { quotas, ask, begun } = askers({ ...few, underWayMax: 1 }, () => now)
    const askFrom = (name: string, host: number) => ask(name, { key: ACME, address: `192.0.2.${host}` })
    askFrom("as its org", 1)
    now = 599_999
    askFrom("waits behind it", 2)
    now = 600_001
    askFrom("as an address", 3)
    quotas.goodKey(hashOfKey(ACME), acme)
    askFrom("waits again", 4)
    quotas.wrongKey("192.0.2.1", hashOfKey(ACME))
    askFrom("as another address", 5)
    expect(begun).toEqual(["as its org", "as an address", "as another address"])
  })

  it("does so however wrong the clock of the machine is", async () => {
    const quotas = await Effect.runPromise(Effect.provide(Quotas, layer(null, { ...few, underWayMax: 1 })))
    const { ask, begun } = askersOf(quotas)
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 20 * 60_000)
    ask("address")
    ask("org", { key: ACME })
    vi.restoreAllMocks()
    expect(begun).toEqual(["address", "org"])
  })
})

describe("lists and counts", () => {
  it("are read so many at a time, and orgs take turns at them", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const begun: Array<string> = []
        const gates = yield* Effect.all(Array.from({ length: 5 }, () => Deferred.make<void>()))
        for (const [n, org] of ["busy", "busy", "busy", "busy", "other"].entries()) {
          const read = Effect.andThen(
            Effect.sync(() => begun.push(org)),
            Deferred.await(gates[n]!)
          )
          yield* Effect.forkChild(Effect.provideService(asReader(read), ActingOrg, OrgId.make(org)), {
            startImmediately: true
          })
        }
        expect(begun).toEqual(["busy", "busy"])
        yield* Deferred.succeed(gates[0]!, undefined)
        yield* Deferred.succeed(gates[1]!, undefined)
        yield* Effect.sleep(1)
        expect(begun.toSorted()).toEqual(["busy", "busy", "busy", "other"])
      }).pipe(
        Effect.provideService(
          Quotas,
          makeQuotas(null, () => 0, { ...few, readsMax: 2 })
        )
      )
    ))
})

describe("wrong keys", () => {
  const limits: QuotaLimits = {
    ...few,
    wrongKeysOfAddress: { perSecond: 1, burst: 3 },
    wrongKeysOfAll: { perSecond: 5, burst: 10 }
  }
  const at = "192.0.2.1"

  it("of one address are looked up so often and no more, and a good key always", () => {
    let now = 0
    const { quotas } = askers(limits, () => now)
    for (let tried = 0; tried < 3; tried++) {
      expect(quotas.wrongKeyWait(at, "a")).toBe(0)
      quotas.wrongKey(at, "a")
    }
    expect(quotas.wrongKeyWait(at, "a")).toBe(1)
    expect([quotas.wrongKeyWait("192.0.2.2", "a"), quotas.wrongKeyWait(at, hashOfKey(ACME))]).toEqual([0, 0])
    now = 1_500
    expect(quotas.wrongKeyWait(at, "a")).toBe(0)
  })

  it("of many addresses are bounded together", () => {
    const { quotas } = askers(limits)
    for (let host = 0; host < 10; host++) quotas.wrongKey(`198.51.100.${host}`, "b")
    expect(quotas.wrongKeyWait("203.0.113.1", "a")).toBe(1)
  })

  it("are answered 429 when there were too many, and the others' requests go on", async () => {
    const { call, makeKey } = await start()
    const key = await makeKey("acme")
    const stats = (key: string) => call("GET", "/api/v1/outbound/stats", { key, org: null })
    expect((await stats(key)).status).toBe(200)
    const statuses = new Set<number>()
    // Many at once: what is used up comes back with time.
    for (let tried = 0; tried < 5_000 && !statuses.has(429); tried += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => stats(generateKey())))
      for (const { status, headers } of answers) {
        statuses.add(status)
        if (status === 429) expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
      }
    }
    expect([...statuses].toSorted()).toEqual([401, 429])
    expect((await stats(key)).status).toBe(200)
  })
})
