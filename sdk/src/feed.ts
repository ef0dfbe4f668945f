/**
 * The feed: every fact of the org as it is stored, for as long as the caller reads. A broken or silent connection is made
 * again, and the feed goes on behind the last fact that the caller was given: nothing is left out, and a fact may come twice.
 */
import type { Message } from "./api.ts"
import { type CallOptions, type Connection, queryOf, sleep, waitBefore } from "./client.ts"
import { ConnectionError } from "./errors.ts"

export interface FeedFact {
  /** Where the feed is: `feed({lastEventId})` goes on behind this fact. */
  readonly id: string
  readonly stream: string
  readonly version: number
  /** Such as MessageDelivered. */
  readonly type: string
  /** The type with the version of its shape, such as MessageDelivered@1. */
  readonly name: string
  readonly at: string
  readonly actor: string | null
  readonly data: unknown
  /** What the message is after the fact; null when the fact is about no message. */
  readonly message: Message | null
}

export interface FeedOptions {
  /** The id of the last fact seen. Without one the feed begins now. */
  readonly lastEventId?: string | undefined
  readonly stream?: string | undefined
  readonly type?: string | undefined
  readonly channel?: string | undefined
  readonly to?: string | undefined
  readonly dossierId?: string | undefined
  readonly correlationId?: string | undefined
  readonly status?: Message["status"] | undefined
}

export interface FeedCallOptions extends Pick<CallOptions, "org" | "signal" | "timeoutMs"> {
  /** How long the connection may be silent before it is made again; 45 s by default, three heartbeats. */
  readonly silenceMs?: number | undefined
}

/** Where an event stream is: what it said last. */
interface Place {
  lastEventId: string | undefined
}

export async function* follow(
  { ask }: Connection,
  { lastEventId, ...filter }: FeedOptions = {},
  { silenceMs = 45_000, ...call }: FeedCallOptions = {}
): AsyncGenerator<FeedFact, void, undefined> {
  const place: Place = { lastEventId }
  for (let failed = 0; ; ) {
    // Ended with the connection, so that a caller's signal that lives for weeks does not collect a listener for each.
    const connection = new AbortController()
    const stop = () => connection.abort(call.signal?.reason)
    call.signal?.addEventListener("abort", stop)
    try {
      call.signal?.throwIfAborted()
      const headers = {
        accept: "text/event-stream",
        ...(place.lastEventId === undefined ? {} : { "last-event-id": place.lastEventId })
      }
      const path = `/api/v1/feed${queryOf({ ...filter })}`
      const response = await ask(path, { ...call, signal: connection.signal, method: "GET", headers, endless: true })
      for await (const data of eventsOf(response, place, silenceMs)) {
        failed = 0
        yield { ...(JSON.parse(data.text) as Omit<FeedFact, "id">), id: data.id }
      }
    } catch (error) {
      call.signal?.throwIfAborted()
      const waitMs = waitBefore(error, failed, true)
      if (waitMs === null) throw error
      failed = Math.min(failed + 1, 10)
      await sleep(waitMs, call.signal)
    } finally {
      call.signal?.removeEventListener("abort", stop)
      connection.abort()
    }
  }
}

/** The events of a response, until it ends. An id without data moves the place on, too. */
async function* eventsOf(response: Response, place: Place, silenceMs: number) {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  let data: Array<string> = []
  let id: string | undefined
  try {
    for (;;) {
      const { done, value } = await within(silenceMs, reader.read())
      if (done) throw new ConnectionError("The feed ended.")
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n")
      rest = lines.pop()!
      for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
        if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""))
        else if (line.startsWith("id:")) id = line.slice(3).replace(/^ /, "")
        else if (line === "") {
          // The place moves first: who asks for the next fact has seen this one, and who doesn't has its id.
          if (id !== undefined) place.lastEventId = id
          if (data.length > 0) yield { text: data.join("\n"), id: place.lastEventId ?? "" }
          data = []
          id = undefined
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

const within = <A>(ms: number, promise: Promise<A>): Promise<A> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionError(`The feed was silent for ${ms} ms.`)), ms)
  })
  return Promise.race([promise, silence]).finally(() => clearTimeout(timer))
}
