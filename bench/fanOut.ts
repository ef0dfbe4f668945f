/**
 * (i) Events: one that a thousand endpoints want, again and again, each when the one before was answered; and a hundred a
 * second that twenty want each, so two thousand messages a second. One process in all its roles, as `npm start` runs it.
 */
import type { Client } from "./client.ts"
import { query } from "./databases.ts"
import type { Course } from "./deliveries.ts"
import { type Percentiles, percentiles } from "./latency.ts"
import { messagesOf, openEndpoint, openOrg, startPosthaste } from "./posthaste.ts"
import { type Reconciliation, reconcile } from "./reconcile.ts"
import { startRemote } from "./remote.ts"

export interface FanOut {
  readonly wide: Fan & { readonly bodies: number }
  readonly steady: Fan & { readonly perSecond: number }
}

export interface Fan {
  readonly endpoints: number
  readonly events: number
  /** From the request to its 201. */
  readonly requestToAccepted: Percentiles
  /** Of each message, from the 201 of its event. */
  readonly acceptedToReceived: Percentiles
  readonly reconciliation: Reconciliation
}

const wide = 1_000
const steady = 20
const perSecond = 100

export const measureFanOut = async (
  course: Course,
  {
    events,
    seconds,
    warmUpSeconds
  }: { readonly events: number; readonly seconds: number; readonly warmUpSeconds: number }
): Promise<FanOut> => {
  const databaseUrl = await course.databases.create("fan_out")
  const service = await startPosthaste({ databaseUrl })
  const key = await openOrg(service.url)
  const open = async (count: number, eventType: string) => {
    for (let n = 0; n < count; n++) await openEndpoint(service.url, key, course.sinkUrl, { eventTypes: [eventType] })
  }
  await open(wide, "wide")
  await open(steady, "steady")
  const client = startRemote<Client>("client.ts")
  const target = { url: service.url, account: { key, endpoints: [] }, bytes: course.bytes }

  const fan = async (endpoints: number, offer: () => Promise<Offered>): Promise<Fan> => {
    await course.sink.ask("clear")
    const { warmUp, sent } = await offer()
    await course.sink.ask("arrived", { count: (warmUp.length + sent.size) * endpoints, patienceMs: 20_000 })
    const arrivals = await course.sink.ask("report")
    const received: Array<number> = []
    const ids: Array<string> = []
    for (const event of warmUp) ids.push(...(await messagesOf(service.url, key, event)))
    for (const [event, { acceptedAt }] of sent) {
      const messages = await messagesOf(service.url, key, event)
      ids.push(...messages)
      for (const id of messages) {
        const at = arrivals.firstArrivals.get(id)
        if (at !== undefined) received.push(at - acceptedAt)
      }
    }
    return {
      endpoints,
      events: sent.size,
      requestToAccepted: percentiles([...sent.values()].map(({ scheduledAt, acceptedAt }) => acceptedAt - scheduledAt)),
      acceptedToReceived: percentiles(received),
      reconciliation: reconcile(ids, arrivals)
    }
  }

  const oneByOne = await fan(wide, async () => ({
    warmUp: (await client.ask("inTurn", { ...target, eventType: "wide", count: 3 })).map(({ id }) => id),
    sent: new Map(
      (await client.ask("inTurn", { ...target, eventType: "wide", count: events })).map((each) => [each.id, each])
    )
  }))
  const [row] = await query<{ bodies: string }>(databaseUrl, "select count(*) as bodies from posthaste.shared_body")
  const steadily = await fan(steady, async () => ({
    warmUp: [
      ...(await client.ask("openLoop", { ...target, eventType: "steady", perSecond, seconds: warmUpSeconds })).keys()
    ],
    sent: await client.ask("openLoop", { ...target, eventType: "steady", perSecond, seconds })
  }))
  await client.stop()
  await service.stop()
  await course.databases.drop("fan_out")
  return {
    wide: { ...oneByOne, bodies: Number(row!.bodies) },
    steady: { ...steadily, perSecond }
  }
}

interface Times {
  readonly scheduledAt: number
  readonly acceptedAt: number
}

interface Offered {
  readonly warmUp: ReadonlyArray<string>
  readonly sent: ReadonlyMap<string, Times>
}
