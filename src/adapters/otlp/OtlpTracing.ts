/**
 * Spans by OTLP, configured by `OTEL_*`. Effect's tracer is installed nowhere else: its spans of requests carry URLs.
 */
import { randomBytes } from "node:crypto"
import { Clock, ConfigProvider, Context, DateTime, Effect, Exit, Layer, Option, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import type { TracedAttempt } from "../../application/ports/Tracing.ts"
import { Tracing } from "../../application/ports/Tracing.ts"
import { type TraceContext, traceContextOf, traceparentOf } from "../../application/traceparent.ts"
import type { AttemptOutcome } from "../../domain/delivery/outcome.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"

export interface Options {
  readonly protocol: "http/protobuf" | "http/json"
  /** Share, from 0 to 1, of messages without a caller's trace that get one. */
  readonly share: number
  /** True when the caller's sampling decision counts. */
  readonly parentDecides: boolean
  readonly version: string
}

const external = ({ traceId, spanId, sampled }: TraceContext) => Tracer.externalSpan({ traceId, spanId, sampled })

const subjectOf = (operation: string, messageId: string, queued: MessageQueued) => ({
  "messaging.system": "posthaste",
  "messaging.operation.type": operation,
  "messaging.message.id": messageId,
  "posthaste.org": queued.orgId,
  "posthaste.channel": queued.channel,
  "posthaste.destination": queued.destination
})

const note = (span: Tracer.Span, attributes: Readonly<Record<string, unknown>>) => {
  for (const [name, value] of Object.entries(attributes)) span.attribute(name, value)
}

const attributesOf = ({ messageId, queued, epoch, attempt, dueAt }: TracedAttempt, startMs: number) => ({
  ...subjectOf("send", messageId, queued),
  "posthaste.epoch": epoch,
  "posthaste.attempt": attempt,
  "posthaste.wait_ms": Math.max(0, startMs - DateTime.toEpochMillis(dueAt))
})

const outcomes: Readonly<Record<AttemptOutcome["type"], string>> = {
  Accepted: "succeeded",
  Refused: "refused",
  Unreachable: "failed",
  Deferred: "deferred",
  Unknown: "unresolved"
}

const make = Effect.fnUntraced(function* ({ share, parentDecides }: Options) {
  const tracer = yield* Tracer.Tracer
  const clock = yield* Clock.Clock
  const nanos = () => clock.currentTimeNanosUnsafe()
  if (tracer === Tracer.nativeTracer) return null

  const decided = (given: TraceContext | null): { readonly parent: TraceContext | null } | null => {
    if (given !== null && parentDecides) return given.sampled ? { parent: given } : null
    // Decided by the trace id, as by every sampler of this name.
    const traceId = given?.traceId ?? randomBytes(16).toString("hex")
    const isChosen = share >= 1 || Number.parseInt(traceId.slice(-14), 16) < share * 2 ** 56
    return isChosen ? { parent: given } : null
  }

  const begin = (name: string, parent: TraceContext | null, kind: Tracer.SpanKind, startTime: bigint) => {
    const before = parent === null ? Option.none() : Option.some(external(parent))
    return tracer.span({
      name,
      parent: before,
      annotations: Context.empty(),
      // The link survives a trace that is cut short.
      links: Option.isSome(before) && kind === "client" ? [{ span: before.value, attributes: {} }] : [],
      startTime,
      kind,
      root: parent === null,
      sampled: true
    })
  }
  const named = ({ traceId, spanId }: Tracer.Span) => traceparentOf({ traceId, spanId, sampled: true })

  const kept = (queued: MessageQueued): TraceContext | null => {
    const context = traceContextOf(queued.traceparent)
    return context?.sampled === true ? context : null
  }

  const attempt = (about: TracedAttempt) => {
    const parent = kept(about.queued)
    if (parent === null) return null
    const start = nanos()
    const span = begin(`deliver ${about.queued.channel}`, parent, "client", start)
    note(span, attributesOf(about, Number(start / 1_000_000n)))
    return span
  }

  return Tracing.of({
    acceptance: (given, queued, id, via) => {
      const context = traceContextOf(given)
      const chosen = decided(context)
      if (chosen === null) return null
      const span = begin("accept message", chosen.parent, "producer", nanos())
      note(span, { ...subjectOf("create", id, queued), "posthaste.via": via })
      return {
        traceparent: named(span),
        end: (outcome) => {
          span.attribute("posthaste.outcome", outcome)
          span.end(nanos(), Exit.void)
        }
      }
    },
    attempt: (about) => {
      const span = attempt(about)
      if (span === null) return null
      return {
        traceparent: named(span),
        end: (outcome) => {
          span.attribute("posthaste.outcome", outcomes[outcome.type])
          if (outcome.status !== null) span.attribute("http.response.status_code", outcome.status)
          if (outcome.type !== "Accepted") span.attribute("posthaste.reason", outcome.error.code)
          span.end(nanos(), outcome.type === "Accepted" ? Exit.void : Exit.fail(new Error(outcome.error.code)))
        }
      }
    },
    abandoned: (about, facts) => {
      for (const fact of facts) {
        if (fact.type !== "AttemptAbandoned" && fact.type !== "AttemptUnresolved") continue
        const span = attempt({ ...about, attempt: fact.attempt })
        if (span === null) continue
        span.attribute("posthaste.outcome", fact.type === "AttemptAbandoned" ? "abandoned" : "unresolved")
        span.attribute("posthaste.reason", "abandoned")
        span.end(nanos(), Exit.fail(new Error("abandoned")))
      }
    }
  })
})

export const layer = (options: Options) =>
  Layer.effect(
    Tracing,
    Effect.flatMap(make(options), (tracing) => (tracing === null ? Tracing : Effect.succeed(tracing)))
  ).pipe(
    Layer.provide(OtlpTracer.layerFromConfig({ resource: { serviceVersion: options.version } })),
    // Setting an endpoint implies the exporter: OpenTelemetry's default, not Effect's.
    Layer.provide(
      ConfigProvider.layerAdd(
        ConfigProvider.fromUnknown({ OTEL_TRACES_EXPORTER: "otlp", OTEL_SERVICE_NAME: "posthaste" })
      )
    ),
    Layer.provide(options.protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf),
    Layer.provide(FetchHttpClient.layer)
  )
