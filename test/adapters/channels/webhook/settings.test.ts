import { describe, expect, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { parseNetworks } from "../../../../src/adapters/channels/net/addressGuard.ts"
import type { EndpointSettings } from "../../../../src/adapters/channels/webhook/settings.ts"
import { type Style, styles } from "../../../../src/adapters/channels/webhook/signature.ts"
import * as WebhookChannel from "../../../../src/adapters/channels/webhook/WebhookChannel.ts"
import { settingsOf } from "../../../../src/application/destinations/destinations.ts"
import { webhook } from "../../../contracts/destinations/samples.ts"

/** Why a setting or secret is refused; null when it is fine. */
const policyWith = (networks: string) => {
  const rules = { allowedNetworks: Result.getOrThrow(parseNetworks(networks)), exemptions: [] }
  const { faultsOf } = WebhookChannel.channel(rules)
  const check = (
    given: Partial<EndpointSettings>,
    secrets: Readonly<Record<string, string>> = {},
    before: EndpointSettings | null = null
  ) => {
    const settings = settingsOf(webhook, { url: "https://shop.example", ...given }) as EndpointSettings
    const draft = { settings, secretNames: Object.keys(secrets), secrets, given: Object.keys(given), before }
    return faultsOf(draft)[0]?.reason ?? null
  }
  return {
    checkUrl: (url: string) => check({ url }),
    checkSecret: (secret: string, signature: Style = "standard") => check({ signature }, { secret }),
    checkChange: (before: Style, signature: Style) =>
      check(
        { signature },
        {},
        settingsOf(webhook, { url: "https://shop.example", signature: before }) as EndpointSettings
      ),
    checkHeaders: (headers: EndpointSettings["headers"]) => check({ headers })
  }
}
const policy = policyWith("")

describe("the URL of an endpoint", () => {
  it.each([
    "https://example.com/hooks",
    "http://example.com:8080/hooks?a=b#c",
    "https://8.8.8.8/",
    "https://[2606:4700:4700::1111]/",
    "https://localhost.example.com/",
    "https://example.com./"
  ])("may be %s", (url) => expect(policy.checkUrl(url)).toBeNull())

  it.each([
    ["", "not a URL"],
    ["example.com", "not a URL"],
    ["/hooks", "not a URL"],
    ["https://", "not a URL"],
    ["https://exa mple.com/", "not a URL"],
    ["https://example.com:99999/", "not a URL"],
    ["ftp://example.com/", "http and https"],
    ["file:///etc/passwd", "http and https"],
    ["gopher://127.0.0.1:25/", "http and https"],
    ["javascript:alert(1)", "http and https"],
    ["https://user:pass@example.com/", "user name"],
    ["http://169.254.169.254%2f@example.com/", "user name"],
    ["http://127.0.0.1/", "private or reserved"],
    ["http://2130706433/", "private or reserved"],
    ["http://[::ffff:127.0.0.1]:8080/", "private or reserved"],
    ["http://169.254.169.254/latest/meta-data/", "private or reserved"],
    ["http://localhost:3000/", "private or reserved"],
    ["http://LOCALHOST./", "private or reserved"],
    ["http://api.localhost/", "private or reserved"],
    [`https://example.com/${"a".repeat(2048)}`, "characters"]
  ])("may not be %s", (url, reason) => expect(policy.checkUrl(url)).toContain(reason))

  it("may be local when the operator opened that network", () => {
    const open = policyWith("127.0.0.0/8")
    expect(open.checkUrl("http://localhost:3000/")).toBeNull()
    expect(open.checkUrl("http://127.0.0.1:3000/")).toBeNull()
    expect(open.checkUrl("http://10.0.0.1:3000/")).toContain("POSTHASTE_ALLOWED_NETWORKS")
  })
})

describe("the headers of an endpoint", () => {
  it.each([
    {},
    { authorization: "Bearer abc", "X-Tenant": "7" },
    { "x-empty": "", "x-tab": "a\tb", "!#$%&'*+-.^_`|~": "odd but a token" }
  ])("may be %j", (headers) => expect(policy.checkHeaders(headers)).toBeNull())

  it.each([
    [{ "x y": "1" }, "not a header name"],
    [{ "": "1" }, "not a header name"],
    [{ "x:": "1" }, "not a header name"],
    [{ "x\r\ny": "1" }, "not a header name"],
    [{ "x-å": "1" }, "not a header name"],
    [{ x: "a\r\nhost: evil" }, "printable ASCII"],
    [{ x: "a\nb" }, "printable ASCII"],
    [{ x: "a\0b" }, "printable ASCII"],
    [{ x: "å" }, "printable ASCII"],
    [{ x: "a\x7f" }, "printable ASCII"],
    [{ x: "a".repeat(4097) }, "longer"],
    [{ "X-A": "1", "x-a": "2" }, "twice"],
    [Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`x-${n}`, "1"])), "at most 32"]
  ])("may not be %j", (headers, reason) => expect(policy.checkHeaders(headers)).toContain(reason))

  it.each([
    "Host",
    "Content-Length",
    "content-type",
    "CONTENT-ENCODING",
    "Transfer-Encoding",
    "Connection",
    "Keep-Alive",
    "Upgrade",
    "Expect",
    "TE",
    "Trailer",
    "Proxy-Authorization",
    "User-Agent",
    "Accept-Encoding",
    "webhook-id",
    "Webhook-Signature",
    "X-Signature",
    "x-timestamp",
    "X-Correlation-ID",
    "X-Event-Type"
  ])("may not set %s", (name) => expect(policy.checkHeaders({ [name]: "1" })).toContain("set by Posthaste"))
})

describe("the secret of an endpoint", () => {
  const generated = (signature: Style) => {
    const settings = settingsOf(webhook, { url: "https://shop.example", signature }) as EndpointSettings
    return Redacted.value(webhook.secrets["secret"]!.generate!(settings))
  }

  it.each(styles)("that was generated may be used: %s", (style) =>
    expect(policy.checkSecret(generated(style), style)).toBeNull()
  )

  it("that can't sign may not", () => {
    expect(policy.checkSecret("short")).toContain("whsec_")
    expect(policy.checkSecret("short", "ed25519")).toContain("whsk_")
    expect(policy.checkSecret(generated("ed25519"))).toContain("whsec_")
    expect(policy.checkSecret(generated("legacy"), "ed25519")).toContain("whsk_")
  })

  it("stays of its kind: a change to or from ed25519 is refused", () => {
    const refused = styles.flatMap((before) =>
      styles.filter((after) => policy.checkChange(before, after) !== null).map((after) => `${before} → ${after}`)
    )
    expect(refused).toEqual(["standard → ed25519", "ed25519 → standard", "ed25519 → legacy", "legacy → ed25519"])
  })
})
