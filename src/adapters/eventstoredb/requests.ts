/** Reads in the protocol's own words. */
import shared from "@eventstore/db-client/generated/shared_pb.js"
import messages, { type ReadReq, type ReadResp } from "@eventstore/db-client/generated/streams_pb.js"
import type { ReadEvent } from "./streams.ts"

/** `commit/prepare`. */
type LogPosition = string

export type News =
  | { readonly type: "Event"; readonly event: ReadEvent; readonly position: LogPosition }
  /** No event of the followed streams up to here. */
  | { readonly type: "Checkpoint"; readonly position: LogPosition }

/** Events passed over before a checkpoint. */
const WINDOW = 256

export const streamRequest = (stream: string, from: number, count: number): ReadReq => {
  const where = new messages.ReadReq.Options.StreamOptions()
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream, "utf8").toString("base64"))
  where.setStreamIdentifier(identifier)
  where.setRevision(String(from))
  const options = optionsFor(count)
  options.setStream(where)
  options.setNoFilter(new shared.Empty())
  return requestOf(options)
}

/** Follows the streams with this prefix beyond a position. */
export const followRequest = (prefix: string, after: LogPosition | null): ReadReq => {
  const where = new messages.ReadReq.Options.AllOptions()
  if (after === null) where.setStart(new shared.Empty())
  else {
    const [commit = "0", prepare = commit] = after.split("/")
    const position = new messages.ReadReq.Options.Position()
    position.setCommitPosition(commit)
    position.setPreparePosition(prepare)
    where.setPosition(position)
  }
  const expression = new messages.ReadReq.Options.FilterOptions.Expression()
  expression.setPrefixList([prefix])
  const filtering = new messages.ReadReq.Options.FilterOptions()
  filtering.setStreamIdentifier(expression)
  filtering.setMax(WINDOW)
  filtering.setCheckpointintervalmultiplier(1)
  const options = optionsFor("follow")
  options.setAll(where)
  options.setFilter(filtering)
  return requestOf(options)
}

const optionsFor = (extent: number | "follow") => {
  const options = new messages.ReadReq.Options()
  const uuids = new messages.ReadReq.Options.UUIDOption()
  uuids.setString(new shared.Empty())
  options.setUuidOption(uuids)
  options.setResolveLinks(false)
  options.setReadDirection(messages.ReadReq.Options.ReadDirection.FORWARDS)
  if (extent === "follow") options.setSubscription(new messages.ReadReq.Options.SubscriptionOptions())
  else options.setCount(String(extent))
  return options
}

const requestOf = (options: ReadReq.Options): ReadReq => {
  const request = new messages.ReadReq()
  request.setOptions(options)
  return request
}

export const newsOf = (response: ReadResp): News | null => {
  const event = eventOf(response)
  if (event !== null) {
    const record = response.getEvent()!.getEvent()!
    return { type: "Event", event, position: `${record.getCommitPosition()}/${record.getPreparePosition()}` }
  }
  if (!response.hasCheckpoint()) return null
  const checkpoint = response.getCheckpoint()!
  return { type: "Checkpoint", position: `${checkpoint.getCommitPosition()}/${checkpoint.getPreparePosition()}` }
}

const TICKS_PER_MILLI = 10_000n

/** Null for a response without an event. */
export const eventOf = (response: ReadResp): ReadEvent | null => {
  const record = response.getEvent()?.getEvent()
  if (record === undefined) return null
  const about = record.getMetadataMap()
  return {
    id: record.getId()!.getString(),
    stream: text(record.getStreamIdentifier()!.getStreamName_asU8()),
    revision: Number(record.getStreamRevision()),
    type: about.get("type") ?? "",
    data: parsed(record.getData_asU8()),
    metadata: parsed(record.getCustomMetadata_asU8()),
    // In ticks of 100 ns.
    createdMs: Number(BigInt(about.get("created") ?? "0") / TICKS_PER_MILLI)
  }
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8")

/** Undefined: no JSON, so not our event. */
const parsed = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(text(bytes))
  } catch {
    return undefined
  }
}
