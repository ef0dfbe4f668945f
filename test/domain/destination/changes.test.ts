import { describe, expect, it } from "vitest"
import { changesOf } from "../../../src/domain/destination/changes.ts"
import { toRecorded } from "../../../src/domain/destination/facts.ts"
import { OrgId } from "../../../src/domain/ids.ts"

describe("facts of a changed destination", () => {
  it("tell what was set by name only", () => {
    const of = { orgId: OrgId.make("acme"), channel: "http" } as const
    const facts = changesOf(
      of,
      { url: "https://psp.example/?token=s3cret", timeoutMs: 5 },
      { apiKey: "s3cret", old: null }
    )
    expect(facts).toEqual([
      { type: "DestinationChanged", ...of, fields: ["timeoutMs", "url"] },
      { type: "DestinationSecretsChanged", ...of, names: ["apiKey", "old"] }
    ])
    expect(JSON.stringify(facts.map(toRecorded))).not.toContain("s3cret")
  })

  it("are none where nothing was set", () => {
    expect(changesOf({ orgId: OrgId.make("acme"), channel: "webhook" }, {})).toEqual([])
  })
})
