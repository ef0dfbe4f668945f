import { Effect } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { StoreUnavailable } from "../../src/application/ports/errors.ts"
import { layerOf } from "../../src/setup/logs.ts"

const written = async (format: "json" | "text", level: "debug" | "info" | "warn", effect: Effect.Effect<void>) => {
  const lines: Array<string> = []
  const write = vi.spyOn(process.stdout, "write").mockImplementation((chunk) => lines.push(String(chunk)) > 0)
  try {
    await Effect.runPromise(Effect.provide(effect, layerOf({ format, level })))
  } finally {
    write.mockRestore()
  }
  return lines
}

afterEach(() => vi.restoreAllMocks())

describe("the log", () => {
  it("is one JSON object a line, with its fields", async () => {
    const [line] = await written(
      "json",
      "info",
      Effect.logWarning("a circuit opened").pipe(Effect.annotateLogs({ a: 1 }))
    )
    expect(JSON.parse(line!)).toEqual({ time: expect.any(String), level: "warn", message: "a circuit opened", a: 1 })
    expect(line!.endsWith("\n")).toBe(true)
  })

  it("is one line of text, whatever the message holds", async () => {
    const [line] = await written(
      "text",
      "info",
      Effect.logInfo("one\ntwo\u001b[31m").pipe(Effect.annotateLogs({ a: "b\nc" }))
    )
    expect(line).toMatch(/^\S+Z INFO {2}one two \[31m a=b c\n$/)
  })

  it("leaves out what is below its level", async () => {
    expect(await written("json", "warn", Effect.logInfo("quiet"))).toEqual([])
    expect(await written("json", "debug", Effect.logDebug("loud"))).toHaveLength(1)
  })

  it("names an error and its causes, and quotes nothing that was read", async () => {
    const secret = "whsec_marked"
    const parsing = (() => {
      try {
        return JSON.parse(`${secret} {`) as Error
      } catch (error) {
        return error as Error
      }
    })()
    expect(parsing.message).toContain("whsec")
    const refused = Object.assign(new Error(`invalid input syntax for type uuid: "${secret}"`), { code: "22P02" })
    const lines = await written(
      "json",
      "debug",
      Effect.all([
        Effect.logError("a bug", parsing),
        Effect.logWarning("waits", new StoreUnavailable({ cause: refused })),
        Effect.logWarning("away", new StoreUnavailable({ cause: new Error("connect ECONNREFUSED 127.0.0.1:1") }))
      ]) as unknown as Effect.Effect<void>
    )
    expect(lines.join("")).not.toContain(secret)
    expect(JSON.parse(lines[1]!)).toMatchObject({ error: "StoreUnavailable < Error 22P02" })
    expect(JSON.parse(lines[2]!)).toMatchObject({ error: "StoreUnavailable < Error: connect ECONNREFUSED 127.0.0.1:1" })
  })
})
