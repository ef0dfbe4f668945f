/** Sends single messages or events to Posthaste's HTTP API, from a process of its own. */
import { setTimeout as sleep } from "node:timers/promises"
import { Pool } from "undici"
import { monotonicNow } from "./monotonicNow.ts"
import { type Account, eventRequest, messageRequest } from "./posthaste.ts"
import { serve } from "./remote.ts"

export interface Sent {
  readonly scheduledAt: number
  /** When its 201 had been read. */
  readonly acceptedAt: number
}

interface Target {
  readonly url: string
  readonly account: Account
  readonly bytes: number
  readonly seconds: number
  /** Events of this type in the place of messages. */
  readonly eventType?: string
}

/** Sends message or event `n`; answers with its id. */
const sender = (pool: Pool, { account, bytes, eventType }: Omit<Target, "seconds">) => {
  const headers = { authorization: `Bearer ${account.key}`, "content-type": "application/json" }
  return async (n: number): Promise<string> => {
    const { statusCode, body } = await pool.request({
      path: eventType === undefined ? "/api/v1/outbound/messages" : "/api/v1/events",
      method: "POST",
      headers,
      body: eventType === undefined ? messageRequest(account, n, bytes) : eventRequest(eventType, n, bytes)
    })
    const text = await body.text()
    if (statusCode !== 201) throw new Error(`it was answered ${statusCode}: ${text}`)
    return (JSON.parse(text) as { id: string }).id
  }
}

const client = {
  /**
   * Message n is sent at its scheduled time whether or not earlier ones were answered, so a stall of the service shows
   * in every message that fell into it instead of slowing the sender down (coordinated omission).
   */
  openLoop: async (target: Target & { readonly perSecond: number }): Promise<ReadonlyMap<string, Sent>> => {
    // Connections are opened as the load asks for them; an unhurt service never needs this many.
    const pool = new Pool(target.url, { connections: 256 })
    const send = sender(pool, target)
    const sent = new Map<string, Sent>()
    const failures: Array<unknown> = []
    const underway: Array<Promise<void>> = []
    const startAt = monotonicNow() + 100
    while (underway.length < target.perSecond * target.seconds) {
      const n = underway.length
      const scheduledAt = startAt + (n * 1000) / target.perSecond
      // Timers tick in milliseconds; what they are late counts against the service, through `scheduledAt`.
      if (scheduledAt > monotonicNow()) await sleep(1)
      else
        underway.push(
          send(n).then(
            (id) => void sent.set(id, { scheduledAt, acceptedAt: monotonicNow() }),
            (error) => void failures.push(error)
          )
        )
    }
    await Promise.all(underway)
    await pool.close()
    if (failures.length > 0) throw failures[0]
    return sent
  },

  /** One after the other, each when the one before was answered. */
  inTurn: async (
    target: Omit<Target, "seconds"> & { readonly count: number }
  ): Promise<ReadonlyArray<Sent & { readonly id: string }>> => {
    const pool = new Pool(target.url, { connections: 1 })
    const send = sender(pool, target)
    const sent: Array<Sent & { readonly id: string }> = []
    while (sent.length < target.count) {
      const scheduledAt = monotonicNow()
      const id = await send(sent.length)
      sent.push({ id, scheduledAt, acceptedAt: monotonicNow() })
    }
    await pool.close()
    return sent
  },

  /** Every connection sends its next message when the last was answered. */
  closedLoop: async (
    target: Target & { readonly connections: number }
  ): Promise<{ readonly ids: ReadonlyArray<string>; readonly elapsedMs: number }> => {
    const pool = new Pool(target.url, { connections: target.connections })
    const send = sender(pool, target)
    const ids: Array<string> = []
    let next = 0
    const startedAt = monotonicNow()
    const until = startedAt + target.seconds * 1000
    const loop = async () => {
      while (monotonicNow() < until) ids.push(await send(next++))
    }
    await Promise.all(Array.from({ length: target.connections }, loop))
    const elapsedMs = monotonicNow() - startedAt
    await pool.close()
    return { ids, elapsedMs }
  }
}

export type Client = typeof client
serve(client)
