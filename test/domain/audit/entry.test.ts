import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { entryOf, NOBODY, orgTold } from "../../../src/domain/audit/entry.ts"

const samples = readdirSync(`${import.meta.dirname}/../facts`).map((file) => ({
  name: file.slice(0, -".json".length),
  data: JSON.stringify(JSON.parse(readFileSync(`${import.meta.dirname}/../facts/${file}`, "utf8")).data)
}))
const ID = "01890000-0000-7000-8000-000000000001"
const streams: Readonly<Record<string, string>> = {
  OrgChanged: "org-acme",
  LoginRefused: `access-${ID}`,
  BodyRead: `access-${ID}`
}

it("says the operation of each fact that tells one, its subject, and only what the fact says", () => {
  const told = samples.flatMap(({ name, data }) => {
    const type = name.split("@")[0]!
    const entry = entryOf({ stream: streams[type] ?? `endpoint-${ID}`, name, data })
    return entry === null
      ? []
      : [[name, entry.operation, orgTold({ name, data }), Object.keys(entry.details).join(" ")].join(" · ")]
  })
  expect(told).toMatchInlineSnapshot(`
    [
      "AttemptSucceeded@1 · SENT ·  · attempt",
      "BodyRead@1 · BODY_READ · acme · address",
      "CircuitHeld@1 · HELD ·  · reason",
      "CircuitReset@1 · RESET ·  · ",
      "ConsentGranted@1 · CONSENT_GRANTED · acme · channel source",
      "ConsentWithdrawn@1 · CONSENT_WITHDRAWN · acme · channel source",
      "DestinationAddressed@1 · ADDRESSED · acme · url urlBefore",
      "DestinationChanged@1 · UPDATED · acme · fields",
      "DestinationCreated@1 · CREATED · acme · ",
      "DestinationDisabled@1 · DISABLED · acme · reason",
      "DestinationEnabled@1 · ENABLED · acme · ",
      "DestinationPaused@1 · PAUSED · acme · reason",
      "DestinationRemoved@1 · REMOVED · acme · ",
      "DestinationResumed@1 · RESUMED · acme · ",
      "DestinationSecretRotated@1 · SECRET_ROTATED · acme · name previousUntil",
      "DestinationSecretShown@1 · SECRET_SHOWN · acme · name",
      "DestinationSecretsChanged@1 · SECRETS_CHANGED · acme · names",
      "ErasureCompleted@1 · ERASED · acme · messages events",
      "ErasureRequested@1 · CREATED · acme · by reason",
      "EventErased@1 · ERASED · acme · ",
      "EventTypeArchived@1 · REMOVED · acme · name",
      "EventTypeChanged@1 · UPDATED · acme · name",
      "EventTypeCreated@1 · CREATED · acme · name",
      "KeyCreated@1 · CREATED · acme · name scopes expiresAt networks limits",
      "KeyRevoked@1 · REVOKED · acme · ",
      "LoginRefused@1 · LOGIN_REFUSED · acme · reason address count",
      "MessageBlocked@1 · BLOCKED_BY_POLICY · acme · channel reason",
      "MessageBodyErased@1 · ERASED ·  · ",
      "MessageCancelled@1 · CANCELLED ·  · ",
      "MessageDeadLettered@1 · FAILED ·  · reason code retryable",
      "MessageDismissed@1 · DISMISSED ·  · ",
      "MessageExpired@1 · EXPIRED ·  · ",
      "MessageFailed@1 · FAILED ·  · by code retryable",
      "MessageHurried@1 · HURRIED ·  · ",
      "MessageQueued@1 · CREATED ·  · to eventType",
      "MessageReplayed@1 · REPLAYED ·  · epoch edited replayId",
      "OrgChanged@1 · UPDATED · acme · name limits retention",
      "ReceiptRecorded@1 · UPDATED ·  · receipt contradicts code retryable",
      "ReplayCancelled@1 · CANCELLED ·  · ",
      "ReplayRequested@1 · CREATED · acme · matched",
    ]
  `)
})

it("names the subject as its stream does, and a key or a body that an access was about", () => {
  const subjectOf = (stream: string, data: object, name = "DestinationPaused@1") =>
    Object.values(entryOf({ stream, name, data: JSON.stringify(data) })!.subject).join(" ")
  expect(subjectOf(`message-${ID}`, {})).toBe(`message ${ID}`)
  expect(subjectOf(`whatsapp-account-${ID}`, {})).toBe(`whatsapp-account ${ID}`)
  expect(subjectOf("org-some-team", {})).toBe("org some-team")
  expect(subjectOf("consent-acme:whatsapp:case-1", { dossierId: "case-1" })).toBe("dossier case-1")
  expect(subjectOf(`blocked-${ID}`, {})).toBe("dossier erased")
  expect(subjectOf(`access-${ID}`, { subject: "event", id: "7" }, "BodyRead@1")).toBe("event 7")
  expect(subjectOf(`access-${ID}`, { key: { id: "k1", orgId: "acme" } }, "LoginRefused@1")).toBe("key k1")
  expect(subjectOf(`access-${ID}`, { key: null }, "LoginRefused@1")).toBe(`access ${ID}`)
  expect(orgTold({ name: "LoginRefused@1", data: '{"key":null}' })).toBe(NOBODY)
})

it("tells an address only where requests go to another place", () => {
  const addressed = (urlBefore: string | null) =>
    orgTold({ name: "DestinationAddressed@1", data: JSON.stringify({ orgId: "acme", call: { url: "a" }, urlBefore }) })
  expect([null, "a", "b"].map(addressed)).toEqual([null, null, "acme"])
})
