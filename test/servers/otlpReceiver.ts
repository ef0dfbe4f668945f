/** An OpenTelemetry collector of a test's own: it takes traces by OTLP over HTTP, as JSON and as protobuf. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { gunzipSync } from "node:zlib"
import { Effect } from "effect"

export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string
  readonly name: string
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  readonly startNanos: bigint
  readonly endNanos: bigint
}

/** One field of a protobuf message: its number, and its value as bytes or as a number. */
type Field = readonly [number: number, value: Buffer | bigint]

const fieldsOf = (message: Buffer): ReadonlyArray<Field> => {
  const fields: Array<Field> = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const key = Number(varint())
    const [number, wire] = [key >> 3, key & 7]
    if (wire === 0) fields.push([number, varint()])
    else if (wire === 1) {
      fields.push([number, message.readBigUInt64LE(at)])
      at += 8
    } else if (wire === 5) {
      fields.push([number, BigInt(message.readUInt32LE(at))])
      at += 4
    } else {
      const length = Number(varint())
      fields.push([number, message.subarray(at, at + length)])
      at += length
    }
  }
  return fields
}

const all = (fields: ReadonlyArray<Field>, number: number) =>
  fields.filter(([one]) => one === number).map(([, value]) => value as Buffer)
const first = (fields: ReadonlyArray<Field>, number: number) => fields.find(([one]) => one === number)?.[1]
const textAt = (fields: ReadonlyArray<Field>, number: number) => String(first(fields, number) ?? "")
const hexAt = (fields: ReadonlyArray<Field>, number: number) =>
  ((first(fields, number) as Buffer | undefined) ?? Buffer.alloc(0)).toString("hex")

const fromProtobuf = (body: Buffer): ReadonlyArray<Span> =>
  all(fieldsOf(body), 1)
    .flatMap((resourceSpans) => all(fieldsOf(resourceSpans), 2))
    .flatMap((scopeSpans) => all(fieldsOf(scopeSpans), 2))
    .map((encoded) => {
      const span = fieldsOf(encoded)
      const attributes = all(span, 9).map((pair) => {
        const fields = fieldsOf(pair)
        const value = fieldsOf(first(fields, 2) as Buffer)[0]!
        const [kind, of] = value
        return [textAt(fields, 1), kind === 1 ? String(of) : kind === 4 ? (of as Buffer) : Number(of)] as const
      })
      return {
        traceId: hexAt(span, 1),
        spanId: hexAt(span, 2),
        parentSpanId: hexAt(span, 4),
        name: textAt(span, 5),
        attributes: Object.fromEntries(attributes) as Span["attributes"],
        links: all(span, 13).map((link) => ({ traceId: hexAt(fieldsOf(link), 1), spanId: hexAt(fieldsOf(link), 2) })),
        startNanos: first(span, 7) as bigint,
        endNanos: first(span, 8) as bigint
      }
    })

interface JsonSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: Readonly<Record<string, unknown>> }>
  readonly links?: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
}

const fromJson = (body: Buffer): ReadonlyArray<Span> => {
  const data = JSON.parse(body.toString("utf8")) as {
    resourceSpans: ReadonlyArray<{ scopeSpans: ReadonlyArray<{ spans: ReadonlyArray<JsonSpan> }> }>
  }
  return data.resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans)
    .map((span) => ({
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: span.parentSpanId ?? "",
      name: span.name,
      attributes: Object.fromEntries(
        span.attributes.map(({ key, value }) => {
          const [kind, of] = Object.entries(value).find(([, one]) => one !== undefined && one !== null)!
          return [key, (kind === "intValue" ? Number(of) : of) as string | number]
        })
      ),
      links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
      startNanos: BigInt(span.startTimeUnixNano),
      endNanos: BigInt(span.endTimeUnixNano)
    }))
}

export const otlpReceiver = Effect.acquireRelease(
  Effect.promise(async () => {
    const spans: Array<Span> = []
    const bodies: Array<Buffer> = []
    const types = new Set<string>()
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const raw = Buffer.concat(chunks)
        const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw
        const type = request.headers["content-type"] ?? ""
        types.add(type)
        bodies.push(body)
        if (request.url === "/v1/traces") spans.push(...(type.includes("json") ? fromJson(body) : fromProtobuf(body)))
        response.writeHead(request.url === "/v1/traces" ? 200 : 404, { "content-type": type }).end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, bodies, types, server }
  }),
  ({ server }) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
)
