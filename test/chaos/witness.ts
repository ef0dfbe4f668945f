/**
 * The witness of a campaign, a process of its own that nothing is done to: the clients, which note what was accepted, and the
 * receivers, which note what arrived. From these two logs alone it says what is missing, what came out of order and what should
 * not exist. It knows Posthaste by its HTTP API and by the requests it sends.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { monotonicNow } from "../../bench/monotonicNow.ts"
import { serve } from "../../bench/remote.ts"
import { makeDice } from "../simulation/dice.ts"

interface Entry {
  /** Also its idempotency key. */
  readonly name: string
  readonly endpoint: number
  readonly line: string | null
  readonly delayMs: number | null
  /** Its place in its line. Messages whose order nobody can know, because an answer got lost, share one. */
  rank: number
  askedAt: number
  acceptedAt: number | null
  id: string | null
  /** When its receiver answered 2xx first. */
  tookAt: number | null
  requests: number
  /** Requests that came although its receiver had answered 2xx before. */
  repeats: number
}

export interface Begin {
  readonly seed: number
  readonly apis: ReadonlyArray<string>
  readonly key: string
  readonly org: string
  readonly clients: number
  /** Between two requests of a client, on average. */
  readonly pauseMs: number
}

export interface Judgement {
  readonly accepted: number
  readonly delivered: number
  readonly requests: number
  readonly lost: ReadonlyArray<string>
  readonly outOfOrder: ReadonlyArray<string>
  /** A key that became two messages, a request that nobody asked for, an answer that nobody expects. */
  readonly strange: ReadonlyArray<string>
  /** Requests that came although their receiver had answered 2xx before. */
  readonly repeated: number
  readonly lines: number
}

const ENDPOINTS = 4
const KEYS_PER_CLIENT = 3
const ANSWERS_WITHIN_MS = 12_000
const SAID_MAX = 50

const entries = new Map<string, Entry>()
const open = new Map<string, Entry>()
const lines = new Map<string, Array<Entry>>()
const acceptedBy = new Map<string, number>()
const strange: Array<string> = []
let running = true
let clients: ReadonlyArray<Promise<void>> = []
let took = 0

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const note = (what: string) => {
  if (strange.length < SAID_MAX) strange.push(what)
}

/** Refuses some requests and answers others late, as receivers do. */
const receiver = async (nth: number, seed: number): Promise<string> => {
  const dice = makeDice(seed * 31 + nth)
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { name } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { name: string }
      const id = String(request.headers["webhook-id"])
      const entry = entries.get(name)
      if (entry === undefined || entry.endpoint !== nth) return note(`a request for ${name}, which nobody asked for`)
      if (entry.id !== null && entry.id !== id) note(`${name} is message ${entry.id}, and was sent as ${id}`)
      entry.id = id
      entry.requests += 1
      if (entry.tookAt !== null) entry.repeats += 1
      const status = dice.chance(0.04) ? 503 : 200
      const say = () => {
        if (status === 200 && entry.tookAt === null) {
          entry.tookAt = monotonicNow()
          took += 1
          open.delete(name)
        }
        response.writeHead(status).end()
      }
      if (dice.chance(0.02)) setTimeout(say, dice.between(100, 1_500))
      else say()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
}

interface Answer {
  readonly status: number
  readonly body: { readonly id?: string; readonly items?: ReadonlyArray<Item> }
}
interface Item {
  readonly status: number
  readonly message?: { readonly id: string }
}

const caller =
  (key: string, org: string) =>
  async (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer | null> => {
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "x-org-id": org, "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWERS_WITHIN_MS)
      })
      return { status: response.status, body: (await response.json()) as Answer["body"] }
    } catch {
      return null
    }
  }

const accepted = (entry: Entry, id: string, askedAt: number, api: string) => {
  if (entry.id !== null && entry.id !== id) note(`${entry.name} became ${entry.id} and ${id}`)
  entry.id = id
  entry.acceptedAt = monotonicNow()
  entry.askedAt = askedAt
  acceptedBy.set(api, Math.max(acceptedBy.get(api) ?? 0, askedAt))
}

const isAccepted = (status: number) => status === 200 || status === 201
/** Asked again, it may be accepted. */
const isForLater = (status: number) => status === 503 || status === 429

const witness = {
  begin: async ({ seed, apis, key, org, clients: count, pauseMs }: Begin) => {
    const call = caller(key, org)
    const ids: Array<string> = []
    for (let nth = 0; nth < ENDPOINTS; nth++) {
      const created = await call(`${apis[0]}/api/v1/webhook-endpoints`, { url: await receiver(nth, seed) })
      if (created?.status !== 201) throw new Error(`no endpoint: ${JSON.stringify(created)}`)
      ids.push(created.body.id!)
    }
    const requestOf = ({ name, endpoint, line, delayMs }: Entry) => ({
      channel: "webhook",
      to: ids[endpoint],
      payloadJson: { name },
      retry: { strategy: "fixed", baseMs: 200, attemptsMax: 100 },
      ...(line === null ? {} : { orderingKey: line }),
      ...(delayMs === null ? {} : { deliverAt: new Date(Date.now() + delayMs).toISOString() })
    })

    const client = async (self: number) => {
      const dice = makeDice(seed * 101 + self)
      const drawn = (name: string): Entry => {
        const line = dice.chance(0.6) ? `${self}-${dice.between(1, KEYS_PER_CLIENT)}` : null
        return {
          name,
          endpoint: dice.between(0, ENDPOINTS - 1),
          line,
          delayMs: line === null && dice.chance(0.1) ? dice.between(200, 3_000) : null,
          rank: 0,
          askedAt: 0,
          acceptedAt: null,
          id: null,
          tookAt: null,
          requests: 0,
          repeats: 0
        }
      }
      for (let nth = 0; running; nth++) {
        await pause(dice.between(0, 2 * pauseMs))
        const count = dice.chance(0.15) ? dice.between(2, 12) : 1
        const asked = Array.from({ length: count }, (_, n) => drawn(`${self}.${nth}.${n}`))
        for (const entry of asked) {
          entries.set(entry.name, entry)
          open.set(entry.name, entry)
          if (entry.line === null) continue
          const line = `${entry.endpoint} ${entry.line}`
          const before = lines.get(line) ?? []
          entry.rank = (before.at(-1)?.rank ?? 0) + 1
          lines.set(line, before)
          before.push(entry)
        }
        let isCertain = true
        for (let left = asked; left.length > 0; ) {
          const api = dice.pick(apis)
          const askedAt = monotonicNow()
          // The same request each time: a key that comes with another one is refused.
          const answer =
            count === 1
              ? await call(`${api}/api/v1/outbound/messages`, bodies(left)[0], { "idempotency-key": left[0]!.name })
              : await call(`${api}/api/v1/outbound/messages/batch`, {
                  messages: bodies(left).map((body, n) => ({ ...body, idempotencyKey: left[n]!.name }))
                })
          const items: ReadonlyArray<Item> =
            answer === null
              ? []
              : count === 1
                ? [
                    {
                      status: answer.status,
                      ...(answer.body.id === undefined ? {} : { message: { id: answer.body.id } })
                    }
                  ]
                : (answer.body.items ?? [])
          if (answer !== null && !isForLater(answer.status) && !isAccepted(answer.status))
            note(`${left[0]!.name} was answered ${answer.status}: ${JSON.stringify(answer.body)}`)
          left.forEach((entry, n) => {
            const item = items[n]
            if (item !== undefined && isAccepted(item.status)) accepted(entry, item.message!.id, askedAt, api)
            else if (item !== undefined && !isForLater(item.status))
              note(`${entry.name} was refused: ${JSON.stringify(item)}`)
          })
          left = left.filter(({ acceptedAt }) => acceptedAt === null)
          if (left.length > 0) {
            isCertain = false
            await pause(dice.between(50, 400))
          }
        }
        // Of a batch that was asked for twice some may have been stored the first time.
        if (!isCertain) for (const entry of asked) if (entry.line !== null) entry.rank = lowestOf(asked, entry)
      }
    }
    const requests = new Map<string, ReturnType<typeof requestOf>>()
    const bodies = (of: ReadonlyArray<Entry>) =>
      of.map((entry) => {
        const body = requests.get(entry.name) ?? requestOf(entry)
        requests.set(entry.name, body)
        return body
      })
    clients = Array.from({ length: count }, (_, self) => client(self))
  },

  /** Whether what was asked for after `since` is accepted by every API and taken by every receiver. */
  hasRecovered: ({ since, apis }: { readonly since: number; readonly apis: ReadonlyArray<string> }): boolean => {
    if (!apis.every((api) => (acceptedBy.get(api) ?? 0) >= since)) return false
    const reached = new Set<number>()
    for (const { askedAt, tookAt, endpoint } of recent(since))
      if (askedAt >= since && tookAt !== null) reached.add(endpoint)
    return reached.size === ENDPOINTS
  },

  /** How many of those that were accepted before wait for their receiver. */
  olderThan: (since: number): number =>
    [...open.values()].filter(({ acceptedAt, delayMs }) => acceptedAt !== null && acceptedAt + (delayMs ?? 0) < since)
      .length,

  counts: () => ({ asked: entries.size, took }),

  /** No client asks for anything new; all that was asked for is answered. */
  end: async () => {
    running = false
    await Promise.all(clients)
  },

  judge: (): Judgement => {
    const all = [...entries.values()]
    const outOfOrder: Array<string> = []
    for (const [line, of] of lines) {
      let latest: Entry | null = null
      for (const entry of of.toSorted((a, b) => (a.tookAt ?? 0) - (b.tookAt ?? 0))) {
        if (entry.tookAt === null) continue
        if (latest !== null && latest.rank > entry.rank)
          outOfOrder.push(`line ${line}: ${latest.name} (${latest.id}) came before ${entry.name} (${entry.id})`)
        if (latest === null || entry.rank > latest.rank) latest = entry
      }
    }
    return {
      accepted: all.length,
      delivered: took,
      requests: all.reduce((sum, { requests }) => sum + requests, 0),
      lost: all.filter(({ tookAt }) => tookAt === null).map(({ name, id }) => `${name} (${id})`),
      outOfOrder,
      strange,
      repeated: all.reduce((sum, { repeats }) => sum + repeats, 0),
      lines: lines.size
    }
  }
}

const lowestOf = (asked: ReadonlyArray<Entry>, { endpoint, line }: Entry): number =>
  Math.min(...asked.filter((other) => other.endpoint === endpoint && other.line === line).map(({ rank }) => rank))

/** Entries stand in the order in which they were asked for. */
const recent = (since: number): ReadonlyArray<Entry> => {
  const found: Array<Entry> = []
  for (const entry of [...entries.values()].toReversed()) {
    if (entry.acceptedAt !== null && entry.acceptedAt < since - ANSWERS_WITHIN_MS) break
    found.push(entry)
  }
  return found
}

export type Witness = typeof witness
serve(witness)
