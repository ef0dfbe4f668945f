/** Whatever one asks for, others are taken up in the same turn of the loop. */

import { once } from "node:events"
import { type IncomingMessage, request as send } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { generateKey, hashOf, storedHash } from "../../../../src/adapters/http/keys/apiKey.ts"
import { Door, layer } from "../../../../src/adapters/http/server/door.ts"
import { makeServer } from "../../../../src/adapters/http/server/makeServer.ts"
import { makeTurns, PIECE } from "../../../../src/adapters/http/server/turns.ts"
import { OrgId } from "../../../../src/domain/ids.ts"

/** The loop turns when the test says so. */
const turning = () => {
  const toCall: Array<() => void> = []
  const { take } = makeTurns((turned) => toCall.push(turned))
  const begun: Array<string> = []
  const ask = (who: string, name: string, weight = 1) => take(who, weight, () => begun.push(name))
  const turn = () => {
    for (const turned of toCall.splice(0)) turned()
    return begun.splice(0)
  }
  return { ask, turn, begun: () => begun.splice(0), isQuiet: () => toCall.length === 0 }
}

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}${n}`)

describe("a turn of the loop", () => {
  it("takes up so much of one, at once, and the rest in the next turns in its order", () => {
    const { ask, turn, begun, isQuiet } = turning()
    const all = numbered("a", 2 * PIECE + 3)
    for (const name of all) ask("a", name)
    expect(begun()).toEqual(all.slice(0, PIECE))
    expect(turn()).toEqual(all.slice(PIECE, 2 * PIECE))
    expect(turn()).toEqual(all.slice(2 * PIECE))
    expect(turn()).toEqual([])
    expect(isQuiet()).toBe(true)
  })

  it("takes up what another asks for before the second piece of who has more", () => {
    const { ask, turn, begun } = turning()
    for (const name of numbered("a", 3)) ask("a", name, PIECE)
    expect(begun()).toEqual(["a0"])
    ask("b", "b0")
    expect(begun()).toEqual(["b0"])
    expect(turn()).toEqual(["a1"])
  })

  it("takes up nothing of one before what the same one asked for earlier, however little it is", () => {
    const { ask, turn, begun } = turning()
    ask("a", "small0")
    ask("a", "large", PIECE)
    ask("a", "small1")
    expect(begun()).toEqual(["small0"])
    expect(turn()).toEqual(["large"])
    expect(turn()).toEqual(["small1"])
  })

  it("has room for several, and those who wait take turns", () => {
    const { ask, turn, begun } = turning()
    const who = ["a", "b", "c", "d", "e", "f"]
    for (const one of who) for (const name of numbered(one, 2)) ask(one, name, PIECE)
    expect(begun()).toEqual(["a0", "b0", "c0", "d0"])
    expect(turn()).toEqual(["a1", "b1", "c1", "d1"])
    expect(turn()).toEqual(["e0", "f0"])
    expect(turn()).toEqual(["e1", "f1"])
  })

  it("takes up what a piece asks for next after what others asked for", () => {
    const toCall: Array<() => void> = []
    const { take } = makeTurns((turned) => toCall.push(turned))
    const order: Array<string> = []
    const again = (left: number) => {
      order.push("a")
      if (left > 0) take("a", PIECE, () => again(left - 1))
    }
    take("a", PIECE, () => again(2))
    take("b", PIECE, () => order.push("b"))
    while (toCall.length > 0) toCall.shift()!()
    expect(order).toEqual(["a", "b", "a", "a"])
  })
})

const from = (key: string | null, remoteAddress = "192.0.2.1", more: object = {}) =>
  ({
    headers: { ...(key !== null && { authorization: `Bearer ${key}` }), ...more },
    socket: { remoteAddress }
  }) as unknown as IncomingMessage

const begunBy = (door: Door["Service"], requests: ReadonlyArray<readonly [string, IncomingMessage]>) => {
  const begun: Array<string> = []
  for (const [name, request] of requests) door.takeUp(request, () => begun.push(name))
  return [...begun]
}

const doorOf = () => Effect.runPromise(Effect.provide(Door, layer(null)))
const many = (name: string, request: IncomingMessage) =>
  Array.from({ length: 3 * PIECE }, () => [name, request] as const)

describe("the door", () => {
  it("knows an org by a key that was good, and lets it in before strangers who wait at the same address", async () => {
    const door = await doorOf()
    const key = generateKey()
    door.keys.good(storedHash(hashOf(key)), OrgId.make("acme"), Date.now())
    const begun = begunBy(door, [
      ...many("stranger", from(generateKey())),
      ["acme", from(key)],
      ["stranger", from(null)]
    ])
    expect(begun.filter((name) => name === "stranger").length).toBe(PIECE)
    expect(begun.at(-1)).toBe("acme")
  })

  it("takes all keys of an org for one, and an operator's for the org it names", async () => {
    const door = await doorOf()
    const [first, second, operator] = [generateKey(), generateKey(), "operator"]
    for (const key of [first, second]) door.keys.good(storedHash(hashOf(key)), OrgId.make("acme"), Date.now())
    door.keys.good(storedHash(hashOf(operator)), null, Date.now())
    const begun = begunBy(door, [
      ...many("acme", from(first)),
      ["second", from(second)],
      ["operator", from(operator, "192.0.2.1", { "x-org-id": "acme" })],
      ["other", from(operator, "192.0.2.1", { "x-org-id": "other" })]
    ])
    expect(begun.slice(PIECE)).toEqual(["other"])
  })

  it("tells strangers apart by their addresses", async () => {
    const begun = begunBy(await doorOf(), [...many("a", from(null)), ["b", from(null, "192.0.2.2")]])
    expect(begun.slice(PIECE)).toEqual(["b"])
  })

  it("is passed before anything hears of a request, and a caller who has gone meanwhile costs nothing", async () => {
    const waiting: Array<() => void> = []
    const server = makeServer({}, null, (_, begin) => waiting.push(begin))
    const heard: Array<string> = []
    server.on("request", (request, response) => {
      heard.push(request.url!)
      request.resume().on("end", () => response.end())
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const post = (path: string) => send({ port, host: "127.0.0.1", method: "POST", path, agent: false })
    const gone = post("/gone").on("error", () => {})
    gone.end("x".repeat(100_000))
    await expect.poll(() => waiting.length).toBe(1)
    gone.destroy()
    await expect.poll(() => new Promise((found) => server.getConnections((_, count) => found(count)))).toBe(0)
    const stays = post("/stays")
    stays.end("x")
    await expect.poll(() => waiting.length).toBe(2)
    expect(heard).toEqual([])
    const answered = once(stays, "response")
    for (const begin of waiting) begin()
    await answered
    expect(heard).toEqual(["/stays"])
    server.close()
    server.closeAllConnections()
  })
})
