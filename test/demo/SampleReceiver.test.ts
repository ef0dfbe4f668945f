import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SampleReceiver from "../../demo/SampleReceiver.ts"

const trusting: SampleReceiver.Options = { verify: ({ signature }) => signature === "good" }

const post = ({ address, port }: SampleReceiver.SampleReceiver, signature: string, body: string) =>
  Effect.promise(() => fetch(`http://${address}:${port}/`, { method: "POST", headers: { signature }, body }))

const shown = ({ address, port }: SampleReceiver.SampleReceiver) =>
  Effect.promise(async () => (await (await fetch(`http://${address}:${port}/`)).json()) as SampleReceiver.Delivery[])

describe("the sample receiver", () => {
  it.live("shows what it received, newest first", () =>
    Effect.gen(function* () {
      const receiver = yield* SampleReceiver.start(trusting)
      for (const body of ["one", "two"]) yield* post(receiver, "good", body)
      expect((yield* shown(receiver)).map(({ body, signature }) => `${body} ${signature}`)).toEqual([
        "two valid",
        "one valid"
      ])
    })
  )

  it.live("refuses what is not signed, and shows that it did", () =>
    Effect.gen(function* () {
      const receiver = yield* SampleReceiver.start(trusting)
      expect((yield* post(receiver, "bad", "forged")).status).toBe(401)
      expect(yield* shown(receiver)).toMatchObject([{ signature: "invalid", answered: 401, body: "forged" }])
    })
  )

  it.live("answers below its path only, where it has one", () =>
    Effect.gen(function* () {
      const { address, port, deliveries } = yield* SampleReceiver.start({ ...trusting, path: "/a-secret-path" })
      const at = (path: string, method: string) =>
        Effect.promise(async () => {
          const headers = { signature: "good" }
          const response = await fetch(`http://${address}:${port}${path}`, { method, headers })
          return [response.status, await response.text()] as const
        })
      yield* at("/a-secret-path", "POST")
      expect(deliveries()).toHaveLength(1)
      for (const path of ["/", "/a-secret-path/", "/a-secret-pat", "/?a-secret-path", "//a-secret-path"]) {
        for (const method of ["GET", "POST"]) {
          const [status, text] = yield* at(path, method)
          expect([status, text]).toEqual([404, expect.not.stringContaining("signature")])
        }
      }
      expect(deliveries()).toHaveLength(1)
      expect((yield* at("/a-secret-path", "GET"))[1]).toContain("valid")
    })
  )

  it.live("remembers the latest fifty", () =>
    Effect.gen(function* () {
      const receiver = yield* SampleReceiver.start(trusting)
      for (let n = 1; n <= 53; n++) yield* post(receiver, "good", String(n))
      const bodies = receiver.deliveries().map(({ body }) => body)
      expect(bodies).toHaveLength(50)
      expect([bodies[0], bodies[49]]).toEqual(["53", "4"])
    })
  )

  it.live("answers as it is told, by how many signed deliveries came before", () =>
    Effect.gen(function* () {
      const receiver = yield* SampleReceiver.start({ ...trusting, answer: (earlier) => (earlier < 2 ? 503 : 200) })
      const statuses = yield* Effect.forEach(["good", "bad", "good", "good"], (signature) =>
        Effect.map(post(receiver, signature, "x"), ({ status }) => status)
      )
      expect(statuses).toEqual([503, 401, 503, 200])
    })
  )

  it.live("takes another port when the one it had is taken", () =>
    Effect.gen(function* () {
      const first = yield* SampleReceiver.start(trusting)
      const second = yield* SampleReceiver.start({ ...trusting, preferredPort: first.port })
      expect(second.port).not.toBe(first.port)
      yield* post(second, "good", "here")
      expect(yield* shown(second)).toHaveLength(1)
    })
  )
})
