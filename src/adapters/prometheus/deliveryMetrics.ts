/**
 * Counts deliveries from stored facts. Labels hold nothing a caller wrote, and no org or destination but those the
 * operator lists.
 */
import { Clock, DateTime, Effect, Layer } from "effect"
import { EventStore } from "../../application/ports/EventStore.ts"
import { Queue } from "../../application/ports/Queue.ts"
import type { Subject, Watcher } from "../../application/ports/Telemetry.ts"
import type { DeliveryError } from "../../domain/delivery/DeliveryError.ts"
import { type MessageFact, ReceiptStatus } from "../../domain/message/facts.ts"
import { type Histogram, observe, type Registry } from "./registry.ts"

const attemptBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const latencyBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]
const storeBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

/** Later retries share its label. */
const RETRY_LAST = 10

const commonStatuses: ReadonlySet<string> = new Set(
  [400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 425, 429, 500, 501, 502, 503, 504].map(
    (status) => `http_${status}`
  )
)

export const reasonOf = ({ code }: Pick<DeliveryError, "code">): string => {
  if (!/^[a-z][a-z0-9_]{0,40}$/.test(code)) return "other"
  const status = /^http_(\d)\d\d$/.exec(code)
  return status === null || commonStatuses.has(code) ? code : `http_${status[1]}xx`
}

const deadReasons = {
  "attempts used up": "attempts_used_up",
  "too old to retry": "too_old",
  "too old": "too_old",
  "outcome unknown": "outcome_unknown"
} as const

type Seen = NonNullable<Parameters<typeof observe>[3]>

const rememberedBy = <Value>(make: (key: string) => Value) => {
  const known = new Map<string, Value>()
  return (key: string): Value => {
    const before = known.get(key)
    if (before !== undefined) return before
    const value = make(key)
    known.set(key, value)
    return value
  }
}

/** `traceOf` is null for a message without a trace. */
export const watchDeliveries = (
  registry: Registry,
  destinations: ReadonlySet<string>,
  traceOf: (traceparent: string | undefined) => string | null = () => null
): Watcher & { readonly begin: (channels: ReadonlyArray<string>) => void } => {
  const accepted = registry.counter({
    name: "posthaste_messages_accepted_total",
    help: "Messages that this process accepted and stored.",
    labels: ["channel", "via"]
  })
  const rejected = registry.counter({
    name: "posthaste_rejected_total",
    help: "Messages that this process refused; a request that was refused unread counts as one.",
    labels: ["via", "reason"]
  })
  const attempts = registry.counter({
    name: "posthaste_attempts_total",
    help: "Attempts that were settled, by outcome, and by the error where there was one.",
    labels: ["channel", "outcome", "reason"]
  })
  const durations = registry.histogram({
    name: "posthaste_attempt_duration_seconds",
    help: "How long attempts took, from the first byte out to the whole answer.",
    labels: ["channel"],
    bounds: attemptBounds
  })
  const latencies = registry.histogram({
    name: "posthaste_delivery_latency_seconds",
    help: "From when the attempt that delivered was due to the proof of delivery.",
    labels: ["channel"],
    bounds: latencyBounds
  })
  const retries = registry.counter({
    name: "posthaste_retries_total",
    help: "Attempts that failed and will be made again, by the number of the failed attempt.",
    labels: ["channel", "attempt"]
  })
  const dead = registry.counter({
    name: "posthaste_dead_letters_total",
    help: "Messages that ended in FAILED or DEAD_LETTER.",
    labels: ["channel", "reason"]
  })
  const deferrals = registry.counter({
    name: "posthaste_deferrals_total",
    help: "Attempts that the destination put off. They do not count as attempts of the message.",
    labels: ["channel", "reason"]
  })
  const receipts = registry.counter({
    name: "posthaste_receipts_total",
    help: "Receipts of providers that were recorded.",
    labels: ["status"]
  })
  const inFlight = registry.gauge({
    name: "posthaste_in_flight",
    help: "Attempts under way in this process.",
    labels: ["channel"]
  })
  const leasesLost = registry.counter({
    name: "posthaste_leases_lost_total",
    help: "Batches of this process that another worker took over."
  })()
  const listed =
    destinations.size === 0
      ? null
      : registry.counter({
          name: "posthaste_destination_attempts_total",
          help: "Attempts at the destinations that POSTHASTE_METRICS_DESTINATIONS names.",
          labels: ["destination", "outcome"],
          seriesMax: 500
        })

  const usual = rememberedBy((channel: string) => ({
    succeeded: attempts(channel, "succeeded", ""),
    duration: durations(channel),
    latency: latencies(channel),
    inFlight: inFlight(channel)
  }))

  const settled = (
    { queued: { channel, destination } }: Subject,
    outcome: string,
    reason: string,
    durationMs: number | null,
    exemplar: Seen | null
  ) => {
    const known = usual(channel)
    const counter = outcome === "succeeded" ? known.succeeded : attempts(channel, outcome, reason)
    counter.value++
    if (durationMs !== null) observe(known.duration, attemptBounds, durationMs / 1000, exemplar)
    if (listed !== null && destinations.has(destination)) listed(destination, outcome).value++
  }
  const retried = (channel: string, attempt: number, retryAt: DateTime.Utc | null) => {
    if (retryAt !== null) retries(channel, attempt > RETRY_LAST ? `over_${RETRY_LAST}` : String(attempt)).value++
  }
  const count = (subject: Subject, fact: MessageFact, at: DateTime.Utc, exemplar: Seen | null) => {
    const { channel } = subject.queued
    switch (fact.type) {
      case "AttemptSucceeded":
        return settled(subject, "succeeded", "", fact.durationMs, exemplar)
      case "AttemptFailed":
        settled(subject, "failed", reasonOf(fact.error), fact.durationMs, exemplar)
        return retried(channel, fact.attempt, fact.retryAt)
      case "AttemptDeferred":
        deferrals(channel, reasonOf(fact.error)).value++
        return settled(subject, "deferred", reasonOf(fact.error), fact.durationMs, exemplar)
      case "AttemptAbandoned":
        settled(subject, "abandoned", "", null, exemplar)
        return retried(channel, fact.attempt, fact.retryAt)
      case "AttemptUnresolved":
        return settled(subject, "unresolved", reasonOf(fact.error), fact.durationMs, exemplar)
      case "MessageDelivered": {
        const { dueAt } = subject
        const seconds = dueAt === null ? 0 : (DateTime.toEpochMillis(at) - DateTime.toEpochMillis(dueAt)) / 1000
        return observe(usual(channel).latency, latencyBounds, Math.max(0, seconds), exemplar)
      }
      case "MessageFailed":
        dead(channel, fact.by === "receipt" ? "refused_by_receipt" : "refused").value++
        return
      case "MessageDeadLettered":
        dead(channel, deadReasons[fact.reason]).value++
        return
      case "ReceiptRecorded":
        receipts(fact.receipt).value++
        return
    }
  }

  const stored: Watcher["stored"] = (subject, facts, at) => {
    const traceId = traceOf(subject.queued.traceparent)
    const exemplar = traceId === null ? null : { traceId, atSeconds: DateTime.toEpochMillis(at) / 1000 }
    for (const fact of facts) count(subject, fact, at, exemplar)
  }

  return {
    /** Starts counters at 0: alerts would miss the first dead letter of a new counter. */
    begin: (channels) => {
      for (const channel of channels)
        for (const reason of ["refused", "refused_by_receipt", ...Object.values(deadReasons)]) dead(channel, reason)
      for (const status of ReceiptStatus.literals) receipts(status)
    },
    accepted: ({ channel }, via) => {
      accepted(channel, via).value++
    },
    rejected: (via, reason) => {
      rejected(via, reason).value++
    },
    stored,
    storedInBulk: (all, at) => {
      for (const { subject, facts } of all) stored(subject, facts, at)
    },
    circuitChanged: () => {},
    sendingBegan: (channel) => {
      usual(channel).inFlight.value++
    },
    sendingEnded: (channel) => {
      usual(channel).inFlight.value--
    },
    leaseLost: () => {
      leasesLost.value++
    }
  }
}

export const timedStores = (registry: Registry) => {
  const appends = registry.histogram({
    name: "posthaste_append_duration_seconds",
    help: "How long a caller waited for an append, with what shared its commit.",
    bounds: storeBounds
  })()
  const claims = registry.histogram({
    name: "posthaste_claim_duration_seconds",
    help: "How long a claim of due messages took.",
    bounds: storeBounds
  })()
  return Layer.merge(
    Layer.effect(
      EventStore,
      Effect.map(EventStore, (store) => ({ ...store, append: (entries) => timed(appends, store.append(entries)) }))
    ),
    Layer.effect(
      Queue,
      Effect.map(Queue, (queue) => ({ ...queue, claim: (request) => timed(claims, queue.claim(request)) }))
    )
  )
}

const timed = <A, E, R>(histogram: Histogram, call: Effect.Effect<A, E, R>) =>
  Clock.clockWith((clock) => {
    const since = clock.monotonicTimeNanosUnsafe()
    return Effect.map(call, (answer) => {
      observe(histogram, storeBounds, Number(clock.monotonicTimeNanosUnsafe() - since) / 1e9)
      return answer
    })
  })
