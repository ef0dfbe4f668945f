/** The hostile org of hostile.ts, in a process of its own: does one harm after the other, as fast as it can. */
import { setTimeout as sleep } from "node:timers/promises"
import { Pool } from "undici"
import { monotonicNow } from "./monotonicNow.ts"
import { serve } from "./remote.ts"

export const harmsOfOrgs = [
  "batches of 1 MiB that are wrong everywhere",
  "200 endpoints that hang, with a backlog each",
  "messages of 200 kB for endpoints that hang",
  "endpoints with 5,000 names that nobody knows",
  "200 lists at once that look through everything",
  "replays of all dead letters, again and again",
  "messages as fast as they are accepted"
] as const
export type HarmOfOrg = (typeof harmsOfOrgs)[number]

interface Scene {
  readonly url: string
  readonly key: string
  readonly receiver: string
  readonly messages: number
}

let pool: Pool | undefined
let headers: Record<string, string>
let hanging: ReadonlyArray<string> = []
let refused: string

const ask = async (method: "GET" | "POST", path: string, body?: string) => {
  const answer = await pool!.request({ method, path: `/api/v1${path}`, headers, ...(body !== undefined && { body }) })
  const text = await answer.body.text()
  counts.set(answer.statusCode, (counts.get(answer.statusCode) ?? 0) + 1)
  return { status: answer.statusCode, text }
}
const counts = new Map<number, number>()

const endpoint = async (fields: object): Promise<string> =>
  (JSON.parse((await ask("POST", "/webhook-endpoints", JSON.stringify(fields))).text) as { id: string }).id

const many = <A>(count: number, make: (n: number) => Promise<A>): Promise<ReadonlyArray<A>> =>
  Promise.all(Array.from({ length: count }, (_, n) => make(n)))

const batchTo = (to: (n: number) => string, count: number, payload: string, more = "") =>
  `{"messages":[${Array.from({ length: count }, (_, n) => `{"channel":"webhook","to":"${to(n)}","payloadJson":${payload}${more}}`).join()}]}`

const once = `,"retry":{"strategy":"fixed","baseMs":0,"attemptsMax":1}`
let isOver = true
/** What it does in a second at most. */
let perSecond = Number.POSITIVE_INFINITY
let done = 0
let begunAt = 0

/** So many do this at a time, one after the other, until it is over. */
const loops = (count: number, work: (n: number) => Promise<unknown>) => {
  let next = 0
  return many(count, async () => {
    while (!isOver) {
      const n = next++
      const dueAt = begunAt + (n * 1000) / perSecond
      while (!isOver && monotonicNow() < dueAt) await sleep(Math.min(Math.max(dueAt - monotonicNow(), 1), 100))
      if (!isOver) await work(n).catch(() => {})
      done += 1
    }
  })
}

const harms: Readonly<Record<HarmOfOrg, () => Promise<unknown>>> = {
  "batches of 1 MiB that are wrong everywhere": () => {
    const waits = `[${"-1,".repeat(85_000)}-1]`
    const entry = `{"channel":"webhook","to":"x","payloadJson":1,"retry":{"strategy":"schedule","waitsMs":${waits}}}`
    const body = `{"messages":[${[entry, entry, entry, entry].join()}]}`
    return loops(16, () => ask("POST", "/outbound/messages/batch", body))
  },
  "200 endpoints that hang, with a backlog each": () =>
    loops(2, () =>
      ask(
        "POST",
        "/outbound/messages/batch",
        batchTo((n) => hanging[n % hanging.length]!, 1_000, "1")
      )
    ),
  "messages of 200 kB for endpoints that hang": () => {
    const payload = JSON.stringify("x".repeat(200_000))
    const body = batchTo((n) => hanging[n % hanging.length]!, 5, payload)
    return loops(2, () => ask("POST", "/outbound/messages/batch", body))
  },
  "endpoints with 5,000 names that nobody knows": () =>
    loops(8, async (n) => {
      const to = await endpoint({ url: `https://n${n % 5_000}.nowhere.example/`, timeoutMs: 28_000 })
      await ask(
        "POST",
        "/outbound/messages/batch",
        batchTo(() => to, 50, "1")
      )
    }),
  "200 lists at once that look through everything": () =>
    loops(200, (n) =>
      ask("GET", ["/outbound/messages?channel=amqp", "/outbound/stats", "/destinations?sort=waiting"][n % 3]!)
    ),
  "replays of all dead letters, again and again": () =>
    loops(4, () => ask("POST", "/dead-letters/replay", `{"filter":{}}`)),
  "messages as fast as they are accepted": () =>
    loops(16, () =>
      ask(
        "POST",
        "/outbound/messages/batch",
        batchTo(() => refused, 100, "1", once)
      )
    )
}

let underWay: Promise<unknown> = Promise.resolve()

const hostileOrg = {
  /** Sets the scene: endpoints that hang, one that nobody listens at, and its dead letters. */
  open: async ({ url, key, receiver, messages }: Scene): Promise<void> => {
    await pool?.close()
    pool = new Pool(url, { connections: 256, headersTimeout: 60_000, bodyTimeout: 60_000 })
    headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    hanging = await many(200, (n) => endpoint({ url: `${receiver}/hangs/${n}`, timeoutMs: 28_000 }))
    refused = await endpoint({ url: "http://127.0.0.1:9/" })
    for (let sent = 0; sent < messages; sent += 1_000)
      await ask(
        "POST",
        "/outbound/messages/batch",
        batchTo(() => refused, 1_000, "1", once)
      )
  },
  /** As fast as it can, or so often in a second. */
  begin: ({ name, most = Number.POSITIVE_INFINITY }: { readonly name: HarmOfOrg; readonly most?: number }): void => {
    isOver = false
    counts.clear()
    perSecond = most
    done = 0
    begunAt = monotonicNow()
    underWay = harms[name]()
  },
  /** Answers what it was told meanwhile, and how often in a second it did what it does. */
  end: async (): Promise<{ readonly told: string; readonly perSecond: number }> => {
    isOver = true
    const rate = (done * 1000) / (monotonicNow() - begunAt)
    await underWay
    return { told: [...counts].map(([status, count]) => `${count} × ${status}`).join(", "), perSecond: rate }
  }
}

export type HostileOrg = typeof hostileOrg
if (process.send !== undefined) serve(hostileOrg)
