/**
 * How a route is called: one request, tried again while that is safe, and answered with what the service answered or with a
 * named error.
 *
 * A call is tried again after 408, 429, 503 and a broken connection, if a repetition can't do it twice: reads, changes that
 * end in the same state, and everything that has an idempotency key, which is made here unless the caller brings one. Any other
 * POST is repeated after 429 only, where nothing was done.
 */
import { ConnectionError, ProblemError, problemErrorOf, TimeoutError } from "./errors.ts"
import { webCrypto } from "./webCrypto.ts"

export interface PosthasteOptions {
  /** Where Posthaste answers, such as http://127.0.0.1:8080. */
  readonly url: string
  readonly apiKey: string
  /** The org to act for. Only the operator's key needs it: every other key belongs to one org. */
  readonly org?: string | undefined
  /** How long one try may take; 30 s by default. */
  readonly timeoutMs?: number | undefined
  /** How often a call is tried again; 4 by default. */
  readonly retries?: number | undefined
  /** What to call instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  readonly org?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly retries?: number | undefined
}

export interface KeyedCallOptions extends CallOptions {
  /** The same key and the same request are done once, however often they are sent. Made by the client if left out. */
  readonly idempotencyKey?: string | undefined
}

export interface Page<Item> {
  readonly items: ReadonlyArray<Item>
  /** Null on the last page. */
  readonly nextCursor: string | null
  /** Of a list that is read from a projection: what was stored before this time is in it. */
  readonly asOf?: string | undefined
  /** How old the oldest fact is that such a list lacks; 0 when it lacks none. */
  readonly behindSeconds?: number | undefined
}

/** A list: `await` answers the first page, `for await` goes through the items of all pages. */
export interface Pages<Item> extends PromiseLike<Page<Item>>, AsyncIterable<Item> {}

/** Method, path, and what the route takes and answers: body, query, key, keyInBody, keyInEach:<field>, pages. */
export type Route = readonly [method: string, path: string, features?: string]

export interface Connection {
  /** A request that is answered with success, or fails with a named error. Not repeated. */
  readonly ask: (path: string, request: AskOptions) => Promise<Response>
  readonly call: (route: Route, given: ReadonlyArray<unknown>) => unknown
}

interface AskOptions extends CallOptions {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Whether the answer may stay open for ever: only its beginning has to come in time. */
  readonly endless?: boolean
}

const RETRY_AFTER_MAX_MS = 60_000
const WAIT_MS = 250
const WAIT_MAX_MS = 8_000

export const connect = (options: PosthasteOptions): Connection => {
  const base = options.url.replace(/\/+$/, "")
  if (!/^https?:\/\//.test(base)) throw new TypeError(`url must begin with http:// or https://, not ${options.url}`)
  if (!options.apiKey) throw new TypeError("apiKey is missing")

  const ask = async (path: string, { method, headers, body, endless, ...call }: AskOptions): Promise<Response> => {
    const org = call.org ?? options.org
    const timeoutMs = call.timeoutMs ?? options.timeoutMs ?? 30_000
    const deadline = new AbortController()
    const abort = () => deadline.abort(call.signal?.reason)
    const timer = setTimeout(() => deadline.abort(timedOut), timeoutMs)
    const timedOut = new TimeoutError(`${method} ${path} had no answer after ${timeoutMs} ms.`)
    call.signal?.throwIfAborted()
    call.signal?.addEventListener("abort", abort)
    try {
      const fetch = options.fetch ?? globalThis.fetch
      const response = await fetch(`${base}${path}`, {
        method,
        headers: {
          accept: "application/json",
          authorization: `Bearer ${options.apiKey}`,
          ...(org === undefined ? {} : { "x-org-id": org }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        ...(body === undefined ? {} : { body }),
        signal: deadline.signal
      })
      if (endless && response.ok) return response
      // Read to the end here, while the deadline holds.
      const text = await response.text()
      if (response.ok)
        return new Response(text === "" ? null : text, { status: response.status, headers: response.headers })
      throw problemErrorOf(response.status, response.headers.get("content-type") ?? "", text, retryAfterOf(response))
    } catch (cause) {
      if (cause instanceof ProblemError) throw cause
      if (deadline.signal.aborted) throw deadline.signal.reason
      throw new ConnectionError(`${method} ${path} had no answer: ${reasonOf(cause)}`, { cause })
    } finally {
      clearTimeout(timer)
      // What is endless is ended by the caller's signal for as long as it is read.
      if (!endless) call.signal?.removeEventListener("abort", abort)
    }
  }

  const request = async ([method, path, features = ""]: Route, given: ReadonlyArray<unknown>): Promise<unknown> => {
    const parts = given.slice()
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, parts.shift()))
    const takes = features.split(" ")
    let body = takes.includes("body") ? parts.shift() : undefined
    const query = takes.includes("query") ? queryOf(parts.shift() as Query | undefined) : ""
    const call = (parts.shift() ?? {}) as KeyedCallOptions
    const headers: Record<string, string> = {}
    if (takes.includes("key")) headers["idempotency-key"] = call.idempotencyKey ?? (await newKey())
    if (takes.includes("keyInBody")) body = { idempotencyKey: await newKey(), ...(body as object | undefined) }
    const each = takes.find((feature) => feature.startsWith("keyInEach:"))?.slice("keyInEach:".length)
    if (each !== undefined) body = await keyInEach(body as Record<string, ReadonlyArray<object>>, each)
    const isRepeatable = method !== "POST" || features.includes("key")
    const asked = { ...call, method, headers, body: body === undefined ? undefined : JSON.stringify(body) }
    const retries = call.retries ?? options.retries ?? 4
    for (let tried = 0; ; tried++) {
      try {
        return await contentOf(await ask(filled + query, asked))
      } catch (error) {
        // A DELETE whose first answer got lost finds nothing any more: that is what was asked for.
        if (method === "DELETE" && tried > 0 && error instanceof ProblemError && error.status === 404) return undefined
        const waitMs = tried < retries ? waitBefore(error, tried, isRepeatable) : null
        if (waitMs === null) throw error
        await sleep(waitMs, call.signal)
      }
    }
  }

  const call = (route: Route, given: ReadonlyArray<unknown>) => {
    if (!route[2]?.includes("pages")) return request(route, given)
    const at = [...route[1].matchAll(/\{/g)].length
    const page = (cursor?: string) => {
      const query = { ...(given[at] as object | undefined), ...(cursor === undefined ? {} : { cursor }) }
      return request(route, [...given.slice(0, at), query, ...given.slice(at + 1)]) as Promise<Page<unknown>>
    }
    return pagesOf(page)
  }

  return { ask, call }
}

const pagesOf = <Item>(page: (cursor?: string) => Promise<Page<Item>>): Pages<Item> => ({
  // biome-ignore lint/suspicious/noThenProperty: a list can be awaited for its first page
  then: (fulfilled, rejected) => page().then(fulfilled, rejected),
  async *[Symbol.asyncIterator]() {
    let cursor: string | undefined
    do {
      const { items, nextCursor } = await page(cursor)
      yield* items
      cursor = nextCursor ?? undefined
    } while (cursor !== undefined)
  }
})

/** 408: it did not arrive in time, as over a network that stood still. */
const mayPass: ReadonlySet<number> = new Set([408, 503])

/** How long to wait before the next try, or null when there must be none. */
export const waitBefore = (error: unknown, tried: number, isRepeatable: boolean): number | null => {
  if (error instanceof ProblemError) {
    if (error.status !== 429 && !(mayPass.has(error.status) && isRepeatable)) return null
    if ((error.retryAfterMs ?? 0) > RETRY_AFTER_MAX_MS) return null
    return Math.max(error.retryAfterMs ?? 0, backoff(tried))
  }
  const isUnanswered = error instanceof ConnectionError || error instanceof TimeoutError
  return isUnanswered && isRepeatable ? backoff(tried) : null
}

/** Half of the time is chance, so that many clients don't come back together. */
const backoff = (tried: number): number => Math.min(WAIT_MS * 2 ** tried, WAIT_MAX_MS) * (0.5 + Math.random() / 2)

export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop)
      resolve()
    }, ms)
    signal?.addEventListener("abort", stop, { once: true })
  })

const retryAfterOf = (response: Response): number | undefined => {
  const value = response.headers.get("retry-after")
  if (value === null) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

const contentOf = async (response: Response): Promise<unknown> => {
  const text = await response.text()
  if (text === "") return undefined
  return (response.headers.get("content-type") ?? "").includes("json") ? JSON.parse(text) : text
}

const segment = (name: string, value: unknown): string => {
  if (typeof value !== "string" || value === "") throw new TypeError(`${name} must be a text that is not empty`)
  // A URL resolves it away, and would lead to another route.
  if (value === "." || value === "..") throw new TypeError(`${name} must not be ${value}`)
  return encodeURIComponent(value)
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>

export const queryOf = (query: Query = {}): string => {
  const given = Object.entries(query).flatMap(
    ([name, value]): Array<[string, string]> => (value === undefined ? [] : [[name, String(value)]])
  )
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`
}

const newKey = async (): Promise<string> => (await webCrypto()).randomUUID()

const keyInEach = async (body: Readonly<Record<string, ReadonlyArray<object>>>, field: string) => ({
  ...body,
  [field]: await Promise.all((body[field] ?? []).map(async (entry) => ({ idempotencyKey: await newKey(), ...entry })))
})

const reasonOf = (error: unknown): string => {
  const { message, cause } = error as { message?: string; cause?: { message?: string; code?: string } }
  return cause?.message || cause?.code || message || String(error)
}
