/**
 * The services a client meets, spoken by the definitions that the client package ships. What it does with a call is
 * decided by `before`: let it through, refuse it, hold it back, or carry it out and break off before the answer.
 */
import gossip from "@eventstore/db-client/generated/gossip_grpc_pb.js"
import gossipMessages from "@eventstore/db-client/generated/gossip_pb.js"
import features from "@eventstore/db-client/generated/serverfeatures_grpc_pb.js"
import featureMessages from "@eventstore/db-client/generated/serverfeatures_pb.js"
import shared from "@eventstore/db-client/generated/shared_pb.js"
import statusMessages from "@eventstore/db-client/generated/status_pb.js"
import streams from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type {
  AppendReq,
  AppendResp,
  BatchAppendReq,
  BatchAppendResp,
  DeleteReq,
  DeleteResp,
  ReadReq,
  ReadResp,
  TombstoneReq,
  TombstoneResp
} from "@eventstore/db-client/generated/streams_pb.js"
import messages from "@eventstore/db-client/generated/streams_pb.js"
import {
  Metadata,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation
} from "@grpc/grpc-js"
import any from "google-protobuf/google/protobuf/any_pb.js"
import empty from "google-protobuf/google/protobuf/empty_pb.js"
import type { EventLog, Expected, Proposed, Recorded, Written } from "./EventLog.ts"

/** What becomes of a call. `Lost`: it is carried out, and its caller hears an error, or (null) nothing at all. */
export type ReceiptResult =
  | { readonly type: "Served"; readonly forgetsIds?: boolean }
  | { readonly type: "Refused"; readonly error: Partial<ServiceError> }
  | { readonly type: "Lost"; readonly error: Partial<ServiceError> | null }
  | { readonly type: "Silent" }

export type Rpc = "append" | "read" | "subscribe" | "delete"
export type Before = (rpc: Rpc, stream: string) => Promise<ReceiptResult>

/** A node of the cluster, on this machine. */
export interface Member {
  readonly port: number
  readonly leads: boolean
  readonly isAlive: boolean
}

export interface Face {
  readonly log: EventLog
  readonly before: Before
  readonly port: () => number
  /** As gossip tells them. */
  readonly members: () => ReadonlyArray<Member>
  /** 23.10 and later say when a subscription has caught up; 21.10 and later have BatchAppend and say so. */
  readonly version: string
}

const failure = (code: status, details: string, headers: Record<string, string> = {}): Partial<ServiceError> => {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return { code, details, metadata }
}

export const failures = {
  unavailable: failure(status.UNAVAILABLE, "Server Is Not Ready"),
  deadlineExceeded: failure(status.DEADLINE_EXCEEDED, "Deadline exceeded"),
  // A real server tells where it threw.
  unknown: failure(status.UNKNOWN, "Unexpected exception\n   at EventStore.Core.Services.Transport.Grpc.Streams"),
  notLeader: (port: number) =>
    failure(status.NOT_FOUND, "Leader info available", {
      exception: "not-leader",
      "leader-endpoint-host": "127.0.0.1",
      "leader-endpoint-port": String(port)
    }),
  wrongExpectedVersion: (stream: string, expected: number, actual: number) =>
    failure(status.FAILED_PRECONDITION, `Append failed due to WrongExpectedVersion of '${stream}'.`, {
      exception: "wrong-expected-version",
      "stream-name": stream,
      "expected-version": String(expected),
      "actual-version": String(actual)
    }),
  streamDeleted: (stream: string) =>
    failure(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
      exception: "stream-deleted",
      "stream-name": stream
    })
}

const nameOf = (identifier: { getStreamName_asU8: () => Uint8Array } | undefined) =>
  Buffer.from(identifier!.getStreamName_asU8()).toString("utf8")

const identifierOf = (name: string) => {
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(name, "utf8").toString("base64"))
  return identifier
}

const uuidOf = (id: string) => {
  const uuid = new shared.UUID()
  uuid.setString(id)
  return uuid
}

const proposedOf = (message: AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage): Proposed => ({
  id: message.getId()!.getString(),
  type: message.getMetadataMap().get("type")!,
  contentType: message.getMetadataMap().get("content-type")!,
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8()
})

const readEvent = (event: Recorded): ReadResp => {
  const record = new messages.ReadResp.ReadEvent.RecordedEvent()
  record.setId(uuidOf(event.id))
  record.setStreamIdentifier(identifierOf(event.stream))
  record.setStreamRevision(String(event.revision))
  record.setCommitPosition(String(event.position))
  record.setPreparePosition(String(event.position))
  record.getMetadataMap().set("type", event.type)
  record.getMetadataMap().set("content-type", event.contentType)
  // .NET counts in ticks of 100 ns.
  record.getMetadataMap().set("created", String(BigInt(event.createdMs) * 10_000n))
  record.setData(event.data)
  record.setCustomMetadata(event.metadata)
  const read = new messages.ReadResp.ReadEvent()
  read.setEvent(record)
  read.setCommitPosition(String(event.position))
  const response = new messages.ReadResp()
  response.setEvent(read)
  return response
}

// ---------------------------------------------------------------------------------------------- append

const expectedOf = (options: AppendReq.Options): Expected => {
  const { ExpectedStreamRevisionCase: is } = messages.AppendReq.Options
  switch (options.getExpectedStreamRevisionCase()) {
    case is.REVISION:
      return Number(options.getRevision())
    case is.NO_STREAM:
      return "noStream"
    case is.STREAM_EXISTS:
      return "streamExists"
    default:
      return "any"
  }
}

const appendResponse = (expected: Expected, written: Exclude<Written, { type: "Tombstoned" }>): AppendResp => {
  const response = new messages.AppendResp()
  if (written.type === "Written") {
    const success = new messages.AppendResp.Success()
    success.setCurrentRevision(String(written.revision))
    if (written.position === null) success.setNoPosition(new shared.Empty())
    else {
      const position = new messages.AppendResp.Position()
      position.setCommitPosition(String(written.position))
      position.setPreparePosition(String(written.position))
      success.setPosition(position)
    }
    response.setSuccess(success)
    return response
  }
  const wrong = new messages.AppendResp.WrongExpectedVersion()
  if (written.current === null) wrong.setCurrentNoStream(new shared.Empty())
  else wrong.setCurrentRevision(String(written.current))
  if (typeof expected === "number") wrong.setExpectedRevision(String(expected))
  else if (expected === "noStream") wrong.setExpectedNoStream(new shared.Empty())
  else if (expected === "streamExists") wrong.setExpectedStreamExists(new shared.Empty())
  else wrong.setExpectedAny(new shared.Empty())
  response.setWrongExpectedVersion(wrong)
  return response
}

/**
 * The connection broke before the request was whole, which the handler is told like an end; only the stream below knows.
 * A client that cancels says that it has ended before it says that it gives up. Its request counts, as far as it came: so
 * may a real server have it.
 */
const isTorn = (call: ServerReadableStream<AppendReq, AppendResp>): boolean =>
  (call as unknown as { readonly call: { readonly stream: { readonly aborted: boolean } } }).call.stream.aborted

const append =
  ({ log, before }: Face) =>
  (call: ServerReadableStream<AppendReq, AppendResp>, answer: sendUnaryData<AppendResp>) => {
    let options: AppendReq.Options | null = null
    const events: Array<Proposed> = []
    call.on("data", (request: AppendReq) => {
      if (request.hasOptions()) options = request.getOptions()!
      else events.push(proposedOf(request.getProposedMessage()!))
    })
    // A caller that gave up.
    call.on("error", () => {})
    call.on("end", async () => {
      if (options === null || isTorn(call)) return
      const name = nameOf(options.getStreamIdentifier())
      const expected = expectedOf(options)
      const result = await before("append", name)
      if (result.type === "Silent") return
      if (result.type === "Refused") return answer(result.error)
      const written = log.append(name, expected, events, "forgetsIds" in result)
      if (result.type === "Lost") return result.error === null ? undefined : answer(result.error)
      if (written.type === "Tombstoned") return answer(failures.streamDeleted(name))
      answer(null, appendResponse(expected, written))
    })
  }

const batchExpectedOf = (options: BatchAppendReq.Options): Expected => {
  const { ExpectedStreamPositionCase: is } = messages.BatchAppendReq.Options
  switch (options.getExpectedStreamPositionCase()) {
    case is.STREAM_POSITION:
      return Number(options.getStreamPosition())
    case is.NO_STREAM:
      return "noStream"
    case is.STREAM_EXISTS:
      return "streamExists"
    default:
      return "any"
  }
}

/** Many appends over one call, told apart by their correlation ids. A fate other than `Served` ends the whole call. */
const batchAppend =
  ({ log, before }: Face) =>
  (call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>) => {
    const open = new Map<string, { readonly options: BatchAppendReq.Options; readonly events: Array<Proposed> }>()
    const finish = async (correlation: string) => {
      const { options, events } = open.get(correlation)!
      open.delete(correlation)
      const name = nameOf(options.getStreamIdentifier())
      const result = await before("append", name)
      if (result.type === "Silent") return
      if (result.type === "Refused") return call.emit("error", result.error)
      const written = log.append(name, batchExpectedOf(options), events)
      if (result.type === "Lost") return result.error === null ? undefined : call.emit("error", result.error)
      call.write(batchResponse(correlation, name, written))
    }
    call.on("data", (request: BatchAppendReq) => {
      const correlation = request.getCorrelationId()!.getString()
      if (request.hasOptions()) open.set(correlation, { options: request.getOptions()!, events: [] })
      open.get(correlation)!.events.push(...request.getProposedMessagesList().map(proposedOf))
      if (request.getIsFinal()) void finish(correlation)
    })
    call.on("error", () => {})
    call.on("end", () => call.end())
  }

const batchResponse = (correlation: string, name: string, written: Written): BatchAppendResp => {
  const response = new messages.BatchAppendResp()
  response.setCorrelationId(uuidOf(correlation))
  response.setStreamIdentifier(identifierOf(name))
  if (written.type === "Written") {
    const success = new messages.BatchAppendResp.Success()
    success.setCurrentRevision(String(written.revision))
    const position = new shared.AllStreamPosition()
    position.setCommitPosition(String(written.position ?? 0))
    position.setPreparePosition(String(written.position ?? 0))
    success.setPosition(position)
    response.setSuccess(success)
    return response
  }
  const problem = new statusMessages.Status()
  const details = new any.Any()
  if (written.type === "WrongExpectedVersion") {
    const wrong = new shared.WrongExpectedVersion()
    if (written.current === null) wrong.setCurrentNoStream(new empty.Empty())
    else wrong.setCurrentStreamRevision(String(written.current))
    wrong.setExpectedAny(new empty.Empty())
    details.pack(wrong.serializeBinary(), "event_store.client.WrongExpectedVersion")
  } else {
    details.pack(new shared.StreamDeleted().serializeBinary(), "event_store.client.StreamDeleted")
  }
  problem.setDetails(details)
  response.setError(problem)
  return response
}

// ---------------------------------------------------------------------------------------------- read

type Matches = (event: Recorded) => boolean

const matcherOf = (options: ReadReq.Options): Matches => {
  if (!options.hasFilter()) return () => true
  const filter = options.getFilter()!
  const onStream = filter.hasStreamIdentifier()
  const expression = (onStream ? filter.getStreamIdentifier() : filter.getEventType())!
  const prefixes = expression.getPrefixList()
  const regex = expression.getRegex() === "" ? null : new RegExp(expression.getRegex())
  return ({ stream, type }) => {
    const text = onStream ? stream : type
    return prefixes.length > 0 ? prefixes.some((prefix) => text.startsWith(prefix)) : (regex?.test(text) ?? true)
  }
}

const read = (face: Face) => async (call: ServerWritableStream<ReadReq, ReadResp>) => {
  const options = call.request.getOptions()!
  const isSubscription = options.hasSubscription()
  const name = options.hasAll() ? "$all" : nameOf(options.getStream()!.getStreamIdentifier())
  const result = await face.before(isSubscription ? "subscribe" : "read", name)
  if (result.type === "Silent") return
  if (result.type === "Lost" && result.error === null) return
  if (result.type !== "Served") return call.emit("error", result.error)
  if (isSubscription) return options.hasAll() ? followAll(face, call) : followStream(face, call, name)
  if (!options.hasAll()) {
    const found = face.log.stream(name)
    if (found === "tombstoned") return call.emit("error", failures.streamDeleted(name))
    if (found === "unknown") {
      const missing = new messages.ReadResp.StreamNotFound()
      missing.setStreamIdentifier(identifierOf(name))
      const response = new messages.ReadResp()
      response.setStreamNotFound(missing)
      call.write(response)
      return call.end()
    }
    await writeAll(call, picked(options, found))
    return call.end()
  }
  await writeAll(call, pickedOfAll(options, face.log))
  call.end()
}

const BACKWARDS = 1

const picked = (options: ReadReq.Options, events: ReadonlyArray<Recorded>): ReadonlyArray<Recorded> => {
  const from = options.getStream()!
  const backwards = options.getReadDirection() === BACKWARDS
  const ordered = backwards ? events.toReversed() : events
  const wanted = from.hasRevision()
    ? ordered.filter(({ revision }) =>
        backwards ? revision <= Number(from.getRevision()) : revision >= Number(from.getRevision())
      )
    : from.hasEnd() === backwards
      ? ordered
      : []
  return wanted.slice(0, Number(options.getCount()))
}

const pickedOfAll = (options: ReadReq.Options, log: EventLog): ReadonlyArray<Recorded> => {
  const from = options.getAll()!
  const matches = matcherOf(options)
  const count = Number(options.getCount())
  const backwards = options.getReadDirection() === BACKWARDS
  const start = from.hasPosition()
    ? log.indexOf(BigInt(from.getPosition()!.getCommitPosition()), false)
    : from.hasEnd()
      ? log.all.length
      : 0
  const found: Array<Recorded> = []
  if (backwards) {
    for (let i = start - 1; i >= 0 && found.length < count; i--) if (matches(log.all[i]!)) found.push(log.all[i]!)
  } else {
    for (let i = start; i < log.all.length && found.length < count; i++) {
      if (matches(log.all[i]!)) found.push(log.all[i]!)
    }
  }
  return found
}

type Reading = ServerWritableStream<ReadReq, ReadResp>

/** False when nobody listens any more. Waits while the caller is slow. */
const say = async (call: Reading, response: ReadResp): Promise<boolean> => {
  if (call.cancelled) return false
  if (!call.write(response)) {
    await new Promise<void>((resolve) => {
      const go = () => {
        call.off("drain", go).off("cancelled", go).off("error", go)
        resolve()
      }
      call.on("drain", go).on("cancelled", go).on("error", go)
    })
  }
  return !call.cancelled
}

const writeAll = async (call: Reading, events: ReadonlyArray<Recorded>) => {
  for (const event of events) if (!(await say(call, readEvent(event)))) return
}

const confirmation = () => {
  const confirmed = new messages.ReadResp.SubscriptionConfirmation()
  confirmed.setSubscriptionId(crypto.randomUUID())
  const response = new messages.ReadResp()
  response.setConfirmation(confirmed)
  return response
}

const caughtUp = () => {
  const response = new messages.ReadResp()
  response.setCaughtUp(new messages.ReadResp.CaughtUp())
  return response
}

const checkpoint = (position: bigint) => {
  const at = new messages.ReadResp.Checkpoint()
  at.setCommitPosition(String(position))
  at.setPreparePosition(String(position))
  const response = new messages.ReadResp()
  response.setCheckpoint(at)
  return response
}

const isFrom = (version: string, major: number, minor: number) => {
  const [a = 0, b = 0] = version.split(".").map(Number)
  return a > major || (a === major && b >= minor)
}

const DEFAULT_WINDOW = 32

const followAll = async (face: Face, call: Reading) => {
  const { log } = face
  const options = call.request.getOptions()!
  const from = options.getAll()!
  const matches = matcherOf(options)
  const filter = options.getFilter()
  const window = filter?.hasMax() === true ? filter.getMax() : DEFAULT_WINDOW
  const every = filter === undefined ? Number.POSITIVE_INFINITY : window * filter.getCheckpointintervalmultiplier()
  let next = from.hasPosition()
    ? log.indexOf(BigInt(from.getPosition()!.getCommitPosition()), true)
    : from.hasEnd()
      ? log.all.length
      : 0
  let passed = 0
  await say(call, confirmation())
  await follow(face, call, async () => {
    const event = log.all[next]
    if (event === undefined) return false
    next += 1
    passed += 1
    if (matches(event) && !(await say(call, readEvent(event)))) return false
    if (passed >= every) {
      passed = 0
      return say(call, checkpoint(event.position))
    }
    return true
  })
}

const followStream = async (face: Face, call: Reading, name: string) => {
  const from = call.request.getOptions()!.getStream()!
  const events = () => {
    const found = face.log.stream(name)
    return typeof found === "string" ? [] : found
  }
  let after = from.hasRevision() ? Number(from.getRevision()) : from.hasEnd() ? (events().at(-1)?.revision ?? -1) : -1
  await say(call, confirmation())
  await follow(face, call, async () => {
    const event = events().find(({ revision }) => revision > after)
    if (event === undefined) return false
    after = event.revision
    return say(call, readEvent(event))
  })
}

/** Takes steps while there is something to say, and again whenever something was appended. */
const follow = async (face: Face, call: Reading, step: () => Promise<boolean>) => {
  let news = true
  let wake = () => {}
  const stop = face.log.onAppend(() => {
    news = true
    wake()
  })
  call.on("cancelled", () => wake())
  let isLive = false
  while (!call.cancelled) {
    if (!news) await new Promise<void>((resolve) => (wake = resolve))
    news = false
    while (!call.cancelled && (await step()));
    if (!isLive && isFrom(face.version, 23, 10)) await say(call, caughtUp())
    isLive = true
  }
  stop()
}

// ---------------------------------------------------------------------------------------------- the rest

type Removal = ServerUnaryCall<DeleteReq | TombstoneReq, DeleteResp | TombstoneResp>

const remove =
  ({ log, before }: Face, how: "softly" | "forEver") =>
  async (call: Removal, answer: sendUnaryData<DeleteResp | TombstoneResp>) => {
    const name = nameOf(call.request.getOptions()!.getStreamIdentifier())
    const result = await before("delete", name)
    if (result.type === "Silent") return
    if (result.type === "Refused") return answer(result.error)
    if (log.stream(name) === "tombstoned") return answer(failures.streamDeleted(name))
    const options = call.request.getOptions()!
    const { REVISION, NO_STREAM } = messages.DeleteReq.Options.ExpectedStreamRevisionCase
    const expects = options.getExpectedStreamRevisionCase()
    const expected = expects === NO_STREAM ? -1 : Number(options.getRevision())
    const current = log.stream(name) === "unknown" ? null : log.lastRevision(name)
    if ((expects === REVISION || expects === NO_STREAM) && current !== null && current !== expected) {
      return answer(failures.wrongExpectedVersion(name, expected, current))
    }
    log.delete(name, how)
    if (result.type === "Lost") return result.error === null ? undefined : answer(result.error)
    const response = how === "softly" ? new messages.DeleteResp() : new messages.TombstoneResp()
    response.setNoPosition(new shared.Empty())
    answer(null, response)
  }

const members =
  ({ members }: Face) =>
  (_: unknown, answer: sendUnaryData<InstanceType<typeof gossipMessages.ClusterInfo>>) => {
    const { LEADER, FOLLOWER } = gossipMessages.MemberInfo.VNodeState
    const info = new gossipMessages.ClusterInfo()
    info.setMembersList(
      members().map(({ port, leads, isAlive }) => {
        const endpoint = new gossipMessages.EndPoint()
        endpoint.setAddress("127.0.0.1")
        endpoint.setPort(port)
        const member = new gossipMessages.MemberInfo()
        member.setInstanceId(uuidOf(crypto.randomUUID()))
        member.setState(leads ? LEADER : FOLLOWER)
        member.setIsAlive(isAlive)
        member.setHttpEndPoint(endpoint)
        return member
      })
    )
    answer(null, info)
  }

const supported =
  ({ version }: Face) =>
  (_: unknown, answer: sendUnaryData<InstanceType<typeof featureMessages.SupportedMethods>>) => {
    if (!isFrom(version, 21, 10)) return answer(failure(status.UNIMPLEMENTED, "Service is unimplemented."))
    const methods = new featureMessages.SupportedMethods()
    methods.setEventStoreServerVersion(version)
    methods.setMethodsList(
      ["append", "batchappend", "read", "delete", "tombstone"].map((name) => {
        const method = new featureMessages.SupportedMethod()
        method.setServiceName("event_store.client.streams.streams")
        method.setMethodName(name)
        return method
      })
    )
    answer(null, methods)
  }

export const services = (
  face: Face
): ReadonlyArray<readonly [service: object, handlers: UntypedServiceImplementation]> =>
  [
    [
      streams.StreamsService,
      {
        append: append(face),
        batchAppend: batchAppend(face),
        read: read(face),
        delete: remove(face, "softly"),
        tombstone: remove(face, "forEver")
      }
    ],
    [features.ServerFeaturesService, { getSupportedMethods: supported(face) }],
    [gossip.GossipService, { read: members(face) }]
  ] as never
