/**
 * A stand-in for EventStoreDB: a node that keeps its streams in memory and speaks the real gRPC protocol, by the definitions
 * that come with the client package. It may have TLS and passwords, and share its streams with other nodes. It outlives being `down`: the same streams are
 * there when it is `up` again on the same port.
 *
 * `inject` decides the fate of the next calls. Without it every call is served, appends after delays that differ, by a seed: so
 * appends that are under way at once are written in another order than they were sent in, as by a real server.
 */
import {
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServiceDefinition,
  status
} from "@grpc/grpc-js"
import { Effect } from "effect"
import { EventLog, type Recorded } from "./eventStore/EventLog.ts"
import { type Face, failures, type Member, type ReceiptResult, type Rpc, services } from "./eventStore/protocol.ts"
import { lastingPort } from "./lastingPort.ts"

export type Fault =
  /** Refused, with the address of a leader: our own, so a client that goes there is served. */
  | "notLeader"
  | "unavailable"
  | "deadlineExceeded"
  | "unknown"
  /** Carried out, and the connection breaks off before the answer. */
  | "lostAck"
  /** Carried out, and never answered. */
  | "lostAnswer"
  /** Neither carried out nor answered. */
  | "silent"
  /** Judged by its revision alone, as if the ids of earlier writes were not known any more. */
  | "forgetsIds"
  | { readonly slowMs: number }

export interface Injection {
  readonly rpc: Rpc
  readonly fault: Fault
  /** How many calls it strikes; once unless told otherwise. */
  readonly times?: number
  /** Only calls about streams that begin so. */
  readonly stream?: string
}

export interface StandIn {
  /** Without TLS. */
  readonly url: string
  readonly port: number
  readonly log: EventLog
  readonly inject: (injection: Injection) => void
  /** Forgets the faults that have not struck yet; of one kind of call, or of all. */
  readonly heal: (rpc?: Rpc) => void
  /** Calls of one kind up to now, whatever became of them. */
  readonly calls: (rpc: Rpc) => number
  readonly down: () => void
  readonly up: () => Promise<void>
}

export const eventsOf = (server: StandIn, stream: string): ReadonlyArray<Recorded> => {
  const found = server.log.stream(stream)
  return typeof found === "string" ? [] : found
}

export const json = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString("utf8"))

export interface Wishes {
  /** What it says it is. 20.10 has neither server features nor BatchAppend, 24.10 has both. */
  readonly version?: string
  /** Shared by the nodes of a cluster, each of which tells the others' places. A node is alone, and leads, otherwise. */
  readonly log?: EventLog
  readonly members?: () => ReadonlyArray<Member>
  /** It speaks TLS, and wants a user and a password for all but gossip. */
  readonly secured?: { readonly key: string; readonly cert: string; readonly user: string; readonly password: string }
}

export const startEventStore = async ({
  version = "24.10.1",
  log = new EventLog(),
  members,
  secured
}: Wishes = {}): Promise<StandIn> => {
  const port = await lastingPort()
  let server: Server | null = null
  let injections: Array<{ injection: Injection; left: number }> = []
  const calls = new Map<Rpc, number>()

  const before: Face["before"] = async (rpc, stream) => {
    calls.set(rpc, (calls.get(rpc) ?? 0) + 1)
    if (rpc === "append") await new Promise((resolve) => setTimeout(resolve, delayOf()))
    const struck = injections.find(
      ({ injection, left }) => left > 0 && injection.rpc === rpc && stream.startsWith(injection.stream ?? "")
    )
    if (struck === undefined) return { type: "Served" }
    struck.left -= 1
    const { fault } = struck.injection
    if (typeof fault === "object") {
      await new Promise((resolve) => setTimeout(resolve, fault.slowMs))
      return { type: "Served" }
    }
    return fateOf(fault, port)
  }

  const delayOf = delays(version.length)
  const alone = () => [{ port, leads: true, isAlive: true }]
  const up = async () => {
    const fresh = new Server(secured === undefined ? {} : { interceptors: [guard(secured)] })
    const face = { log, before, version, port: () => port, members: members ?? alone }
    for (const [service, handlers] of services(face)) {
      fresh.addService(service as ServiceDefinition, handlers)
    }
    await new Promise<void>((resolve, reject) =>
      fresh.bindAsync(`127.0.0.1:${port}`, credentialsOf(secured), (error) =>
        error === null ? resolve() : reject(error)
      )
    )
    server = fresh
  }
  await up()
  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    port,
    log,
    inject: (injection) => injections.push({ injection, left: injection.times ?? 1 }),
    heal: (rpc) => {
      injections = injections.filter(({ injection }) => rpc !== undefined && injection.rpc !== rpc)
    },
    calls: (rpc) => calls.get(rpc) ?? 0,
    down: () => {
      server?.forceShutdown()
      server = null
    },
    up
  }
}

const DELAY_MAX_MS = 8

/** A real server takes appends of different streams in any order, whatever the order they were sent in. */
const delays = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state / 2 ** 32) * DELAY_MAX_MS
  }
}

const credentialsOf = (secured: Wishes["secured"]) =>
  secured === undefined
    ? ServerCredentials.createInsecure()
    : ServerCredentials.createSsl(null, [
        { private_key: Buffer.from(secured.key), cert_chain: Buffer.from(secured.cert) }
      ])

/** Refuses who does not come with the right user and password, in the server's own words. */
const guard = ({ user, password }: NonNullable<Wishes["secured"]>): ServerInterceptor => {
  const wanted = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`
  return ({ path }, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, go) => {
            if (path.includes("Gossip") || metadata.get("authorization")[0] === wanted) go(metadata)
            else call.sendStatus({ code: status.UNAUTHENTICATED, details: "Unauthenticated" })
          }
        })
    })
}

const fateOf = (fault: Exclude<Fault, object>, port: number): ReceiptResult => {
  switch (fault) {
    case "notLeader":
      return { type: "Refused", error: failures.notLeader(port) }
    case "unavailable":
      return { type: "Refused", error: failures.unavailable }
    case "deadlineExceeded":
      return { type: "Refused", error: failures.deadlineExceeded }
    case "unknown":
      return { type: "Refused", error: failures.unknown }
    case "lostAck":
      return { type: "Lost", error: failures.unavailable }
    case "lostAnswer":
      return { type: "Lost", error: null }
    case "silent":
      return { type: "Silent" }
    case "forgetsIds":
      return { type: "Served", forgetsIds: true }
  }
}

/** Runs one for as long as the scope is open. */
export const eventStore = (wishes?: Wishes) =>
  Effect.acquireRelease(
    Effect.promise(() => startEventStore(wishes)),
    ({ down }) => Effect.sync(down)
  )
