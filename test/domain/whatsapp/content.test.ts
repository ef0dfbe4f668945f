import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { readPayload, TEXT_MAX } from "../../../src/domain/whatsapp/content.ts"

const read = (templateCode: string | null, payload: unknown) =>
  readPayload(templateCode, typeof payload === "string" ? payload : JSON.stringify(payload))

const said = (templateCode: string | null, payload: unknown) => Result.getOrThrow(read(templateCode, payload))

const wrong = (templateCode: string | null, payload: unknown) => {
  const result = read(templateCode, payload)
  return Result.isFailure(result) ? result.failure.map(({ field }) => field) : null
}

describe("a payload", () => {
  it("is a template when there is a templateCode", () => {
    expect(said("order_paid", { language: "en_US" })).toEqual({
      content: { type: "template", name: "order_paid", language: { code: "en_US" }, components: null },
      from: null
    })
    const components = [{ type: "body", parameters: [] }]
    const language = { policy: "deterministic", code: "pt_BR" }
    expect(said("t", { language, components, from: "123" })).toEqual({
      content: { type: "template", name: "t", language, components },
      from: "123"
    })
  })

  it("is a text when there is none", () => {
    expect(said(null, { text: "Hello" }).content).toEqual({ type: "text", body: "Hello", previewUrl: null })
    const text = { body: "Hello", preview_url: true }
    expect(said(null, { text, from: null }).content).toEqual({ type: "text", body: "Hello", previewUrl: true })
  })

  it("may be as long as Meta allows, an emoji counted once", () => {
    expect(said(null, { text: "🐎".repeat(TEXT_MAX) })).toMatchObject({ from: null })
    expect(wrong(null, { text: "🐎".repeat(TEXT_MAX + 1) })).toEqual(["payloadJson.text"])
    expect(wrong(null, { text: { body: "x".repeat(TEXT_MAX + 1) } })).toEqual(["payloadJson.text.body"])
  })

  it.each([
    ["nothing to say", null, {}, ["payloadJson"]],
    ["no object", null, [1], ["payloadJson"]],
    ["no JSON", null, "{", ["payloadJson"]],
    ["an empty text", null, { text: " " }, ["payloadJson.text"]],
    ["a text that is none", null, { text: 7 }, ["payloadJson.text"]],
    ["a text without a body", null, { text: {} }, ["payloadJson.text.body"]],
    ["a preview that is none", null, { text: { body: "a", preview_url: "yes" } }, ["payloadJson.text.preview_url"]],
    ["a field of a text that is none", null, { text: { body: "a", title: "b" } }, ["payloadJson.text.title"]],
    ["a language beside a text", null, { text: "a", language: "en" }, ["payloadJson.language"]],
    ["a template and a text", "t", { text: "a", language: "en" }, ["payloadJson.text"]],
    ["no language", "t", {}, ["payloadJson.language"]],
    ["a language that is none", "t", { language: "English!" }, ["payloadJson.language"]],
    ["a language without a code", "t", { language: { name: "English" } }, ["payloadJson.language"]],
    ["components that are no array", "t", { language: "en", components: {} }, ["payloadJson.components"]],
    ["a field that is none", "t", { language: "en", parameters: [] }, ["payloadJson.parameters"]],
    ["a sender that is none", "t", { language: "en", from: 17 }, ["payloadJson.from"]],
    ["a sender that no database can look for", "t", { language: "en", from: "1\0" }, ["payloadJson.from"]],
    ["a sender that is half a character", "t", { language: "en", from: "\ud800" }, ["payloadJson.from"]],
    ["a sender that is longer than an id", "t", { language: "en", from: "1".repeat(65) }, ["payloadJson.from"]],
    [
      "several faults",
      "t",
      { components: 1, from: "" },
      ["payloadJson.from", "payloadJson.language", "payloadJson.components"]
    ]
  ] as const)("is refused by name: %s", (_, templateCode, payload, fields) => {
    expect(wrong(templateCode, payload)).toEqual(fields)
  })

  it("keeps its numbers as they were written", () => {
    const body = '{"language":"en","components":[{"n":12345678901234567890,"d":1.10,"e":-1e2}]}'
    const { content } = said("t", body)
    expect(JSON.stringify(content.type === "template" && content.components)).toBe(
      '[{"n":12345678901234567890,"d":1.10,"e":-1e2}]'
    )
  })
})
