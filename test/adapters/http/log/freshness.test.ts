/** Every answer that is read from a projection says how far behind the facts it is. */
import { OpenApi } from "effect/http-api"
import { describe, expect, it } from "vitest"
import { Api } from "../../../../src/adapters/http/Api.ts"
import { start } from "../served.ts"

const { call, send, endpoint, project } = await start()

const to = await endpoint()
const sent = await send({ channel: "webhook", to, payloadJson: 1, dossierId: "case-17" })
await project()

const lists = [
  "/outbound/messages",
  "/dead-letters",
  "/destinations",
  "/outbound/stats",
  `/destinations/${to}`,
  `/webhook-endpoints/${to}/health`
]

const current = (json: Readonly<Record<string, unknown>>) => json["behindSeconds"] === 0
const read = async (path: string) => (await call("GET", `/api/v1${path}`)).json

describe("the age of what is read from a projection", () => {
  it("is told by each list, and by the counts", async () => {
    for (const path of lists) {
      await expect.poll(async () => current(await read(path)), { message: path, timeout: 120_000 }).toBe(true)
      const { asOf } = await read(path)
      expect(new Date(asOf).toISOString(), path).toBe(asOf)
      expect(Date.parse(asOf), path).toBeGreaterThanOrEqual(Date.parse(sent.json["createdAt"]))
    }
  })

  it("grows while nobody projects, from the first fact that is not there", async () => {
    const { json } = await send({ channel: "webhook", to, payloadJson: 2, dossierId: "case-17" })
    for (const path of lists) {
      await expect.poll(async () => current(await read(path)), { message: path, timeout: 120_000 }).toBe(false)
      const { asOf, behindSeconds } = await read(path)
      expect(Date.parse(asOf), path).toBe(Date.parse(json["createdAt"]))
      expect(behindSeconds, path).toBeGreaterThan(0)
    }
    await project()
    for (const path of lists) {
      await expect.poll(async () => current(await read(path)), { message: path, timeout: 120_000 }).toBe(true)
    }
  })

  it("stands in the document of each of these routes, and of no list that is always current", () => {
    const { paths, components } = OpenApi.fromApi(Api)
    const telling = Object.entries(paths).flatMap(([path, { get }]) => {
      // biome-ignore lint/suspicious/noExplicitAny: a document of any shape
      const page = (get as any)?.responses["200"]?.content?.["application/json"]?.schema.$ref?.split("/").at(-1)
      const fields = (components.schemas[page] as { readonly properties?: object } | undefined)?.properties ?? {}
      return "nextCursor" in fields && "asOf" in fields && "behindSeconds" in fields
        ? [path.slice("/api/v1".length)]
        : []
    })
    expect(telling.toSorted()).toEqual(["/dead-letters", "/destinations", "/outbound/messages"])
  })
})
