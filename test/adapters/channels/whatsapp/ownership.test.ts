import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import { describe } from "vitest"
import * as StandInMeta from "../../../../demo/meta/StandInMeta.ts"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import { ownershipAt } from "../../../../src/adapters/channels/whatsapp/request.ts"
import type { WhatsAppSettings } from "../../../../src/adapters/channels/whatsapp/settings.ts"
import { settingsOf } from "../../../../src/application/destinations/destinations.ts"
import { whatsapp } from "../../../contracts/destinations/samples.ts"

const rules = { allowedNetworks: Result.getOrThrow(parseNetworks("127.0.0.0/8")), exemptions: [] }

const asking = (url: string, phoneNumberId: string, accessToken: string) =>
  ownershipAt(new URL(url), rules)(settingsOf(whatsapp, { phoneNumberId }) as WhatsAppSettings, {
    accessToken
  })

/** A server that answers everything so. */
const answering = (status: number, body: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer((_, response) => response.writeHead(status).end(body))
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => void server.close().closeAllConnections())
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )

describe("the ownership of a phone number", () => {
  it.live("is Meta's to say, of the token that was brought", () =>
    Effect.gen(function* () {
      const meta = yield* StandInMeta.start({})
      for (const number of ["1001", "1002"]) {
        meta.register({ phoneNumberId: number, accessToken: `of-${number}`, displayPhoneNumber: "1555", webhook: null })
      }
      expect(yield* asking(meta.url, "1001", "of-1001")).toEqual([])
      for (const [number, token] of [
        ["1001", "of-1002"],
        ["1001", "nobodys"],
        ["1003", "of-1001"]
      ] as const) {
        const [fault, ...more] = yield* asking(meta.url, number, token)
        expect([fault?.field, more]).toEqual(["accessToken", []])
        expect(fault?.reason).not.toContain(token)
      }
    })
  )

  it.live.each<[number, string]>([
    [200, '{"id":"1002"}'],
    [200, "<html>"],
    [200, '{"error":{"code":190}}'],
    [404, "not here"],
    [400, '{"error":{"code":2,"is_transient":true}}'],
    [500, '{"error":{"code":1}}'],
    [429, '{"error":{"code":4}}'],
    [302, "elsewhere"]
  ])("is not known by an answer %s %s", ([status, body]) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(asking(yield* answering(status, body), "1001", "token"))
      expect(Exit.isFailure(exit)).toBe(true)
    })
  )

  it.live("is not known without an answer", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(asking("http://127.0.0.1:1", "1001", "token"))
      expect(Exit.isFailure(exit)).toBe(true)
    })
  )
})
