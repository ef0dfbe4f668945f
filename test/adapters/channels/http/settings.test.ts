import { Result } from "effect"
import { describe, expect, it } from "vitest"
import * as HttpTargetChannel from "../../../../src/adapters/channels/http/HttpTargetChannel.ts"
import type { HttpTargetSettings } from "../../../../src/adapters/channels/http/settings.ts"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import { settingsOf } from "../../../../src/application/destinations/destinations.ts"
import type { DestinationDraft } from "../../../../src/application/ports/Channels.ts"
import { http } from "../../../contracts/destinations/samples.ts"

const faults = (draft: Draft, networks = "") => {
  const rules = { allowedNetworks: Result.getOrThrow(parseNetworks(networks)), exemptions: [] }
  return HttpTargetChannel.channel(rules).faultsOf(draft)
}

type Draft = DestinationDraft<HttpTargetSettings>
type Change = Partial<HttpTargetSettings> & Partial<Pick<Draft, "secretNames" | "secrets">>

const draft = ({ secretNames = ["token"], secrets = {}, ...change }: Change = {}): Draft => {
  const settings = settingsOf(http, {
    url: "https://psp.example/charges",
    headers: { authorization: "Bearer {{token}}" },
    bodyFields: { key: "{{token}}" },
    reconcile: { url: "https://psp.example/charges/{messageId}" },
    ...change
  }) as HttpTargetSettings
  return { settings, secretNames, secrets, given: Object.keys(settings), before: null }
}

const wrong = (change: Change) => faults(draft(change)).map(({ field }) => field)

describe("a target", () => {
  it("is fine as most are", () => {
    expect(wrong({})).toEqual([])
    expect(wrong({ reconcile: null, headers: {}, bodyFields: {}, secretNames: [] })).toEqual([])
  })

  it.each<[string, Change, ReadonlyArray<string>]>([
    ["a URL that is none", { url: "psp" }, ["url"]],
    ["another scheme", { url: "ftp://psp.example" }, ["url"]],
    ["a password in the URL", { url: "https://a:b@psp.example" }, ["url"]],
    ["a private address", { url: "https://10.0.0.1/" }, ["url"]],
    ["loopback by name", { url: "http://localhost:8080/" }, ["url"]],
    ["a private address to ask at", { reconcile: { url: "http://[::1]/{messageId}" } }, ["reconcile.url"]],
    ["a question about no message", { reconcile: { url: "https://psp.example/charges" } }, ["reconcile.url"]],
    ["a message's id as the host", { reconcile: { url: "https://{messageId}.example/" } }, ["reconcile.url"]],
    [
      "a message's id that is not sent",
      { reconcile: { url: "https://psp.example/charges#{messageId}" } },
      ["reconcile.url"]
    ],
    ["a question that is no URL", { reconcile: { url: "{messageId}" } }, ["reconcile.url"]],
    ["a header that frames the request", { headers: { "Content-Length": "1" } }, ["headers"]],
    ["an idempotency key of its own", { headers: { "Idempotency-Key": "1" } }, ["headers"]],
    ["a message id of its own", { headers: { "X-Message-Id": "1" } }, ["headers"]],
    ["a line break in a header", { headers: { a: "1\r\nb: 2" } }, ["headers"]],
    ["a secret there is not", { headers: { a: "{{gone}}" } }, ["headers"]],
    ["a secret named like a part of every object", { headers: { a: "{{constructor}}" } }, ["headers"]],
    ["braces that name nothing", { headers: { a: "{{ token }}" } }, ["headers"]],
    ["braces left open", { headers: { a: "{{token" } }, ["headers"]],
    ["a body field with a secret there is not", { bodyFields: { key: "{{gone}}" } }, ["bodyFields"]],
    ["a body field without a name", { bodyFields: { "": "a" } }, ["bodyFields"]],
    ["half a character in a body field", { bodyFields: { key: "\ud800" } }, ["bodyFields"]],
    ["all of it", { url: "x", headers: { host: "a" }, reconcile: { url: "y" } }, ["url", "headers", "reconcile.url"]]
  ])("is refused by field for %s", (_, change, fields) => {
    expect(wrong(change)).toEqual(fields)
  })

  it("may lie in a network the operator opened", () => {
    const local = draft({ url: "http://127.0.0.1/", reconcile: { url: "http://127.0.0.1/{messageId}" } })
    expect(faults(local, "127.0.0.0/8")).toEqual([])
    expect(faults(local)).toHaveLength(2)
  })
})

/** Null when it is fine. */
const checkSecret = (name: string, value: string) =>
  faults(draft({ secrets: { [name]: value } })).find(({ field }) => field === `secrets.${name}`)?.reason ?? null

describe("a secret", () => {
  it.each([
    ["token", "sk_live_1"],
    ["a", "~ ~"],
    ["Client-Key_2", "x".repeat(4_096)]
  ])("may be %s", (name, value) => {
    expect(checkSecret(name, value)).toBeNull()
  })

  it.each([
    ["", "value"],
    ["1st", "value"],
    ["a b", "value"],
    ["__proto__", "value"],
    ["x".repeat(65), "value"],
    ["token", ""],
    ["token", "line\nbreak"],
    ["token", "påske"],
    ["token", "x".repeat(4_097)]
  ])("may not be %j with %j, and the reason does not repeat its value", (name, value) => {
    const reason = checkSecret(name, value)
    expect(reason).not.toBeNull()
    if (value !== "") expect(reason).not.toContain(value)
  })
})
