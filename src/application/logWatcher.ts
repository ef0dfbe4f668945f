/**
 * One line in the log for each retry, ending and change of a circuit, with ids and Posthaste's own codes: no text of a
 * caller or receiver, no body, no address. Messages that ended well are at `debug`: there are millions. Bulk changes
 * are one line with their number.
 */
import { Context, DateTime, Effect, LogLevel, References } from "effect"
import type { CircuitFact } from "../domain/circuit/facts.ts"
import type { MessageFact } from "../domain/message/facts.ts"
import { type Subject, unwatched, type Watcher } from "./ports/Telemetry.ts"

type Fields = Readonly<Record<string, string | number | null>>

interface Line {
  readonly level: "Debug" | "Info" | "Warn"
  readonly text: string
  readonly fields: Fields
}

const iso = (at: DateTime.Utc) => DateTime.formatIso(at)

const lineOf = (fact: MessageFact): Line | null => {
  switch (fact.type) {
    case "AttemptFailed":
      // The ending that follows in the same append has a line of its own.
      return fact.retryAt === null
        ? null
        : {
            level: "Info",
            text: "an attempt failed and will be made again",
            fields: { attempt: fact.attempt, code: fact.error.code, status: fact.status, retryAt: iso(fact.retryAt) }
          }
    case "AttemptAbandoned":
      return {
        level: "Warn",
        text: "an attempt was abandoned",
        fields: { attempt: fact.attempt, retryAt: fact.retryAt === null ? null : iso(fact.retryAt) }
      }
    case "AttemptDeferred":
      return {
        level: "Info",
        text: "an attempt was put off by its destination",
        fields: { attempt: fact.attempt, code: fact.error.code, status: fact.status, dueAt: iso(fact.dueAt) }
      }
    case "AttemptUnresolved":
      return {
        level: "Warn",
        text: "nobody knows whether an attempt was taken: its destination will be asked",
        fields: { attempt: fact.attempt, code: fact.error.code, reconcileAt: iso(fact.reconcileAt) }
      }
    case "MessageDelivered":
      return { level: "Debug", text: "a message was delivered", fields: { proof: fact.proof } }
    case "MessageFailed":
      return { level: "Warn", text: "a message was refused for good", fields: { by: fact.by, code: fact.error.code } }
    case "MessageDeadLettered":
      return { level: "Warn", text: "a message was given up", fields: { reason: fact.reason, code: fact.error.code } }
    case "MessageHurried":
      return { level: "Info", text: "a message was hurried by a person", fields: {} }
    case "MessageDismissed":
      return { level: "Info", text: "a dead letter was dismissed by a person", fields: {} }
    case "MessageCancelled":
      return { level: "Info", text: "a message was cancelled", fields: {} }
    case "MessageExpired":
      return { level: "Info", text: "a message expired", fields: {} }
    case "MessageReplayed":
      return { level: "Info", text: "a dead letter was replayed by a person", fields: {} }
    case "MessageBodyErased":
      return { level: "Info", text: "the body of a message was erased", fields: {} }
    default:
      return null
  }
}

const circuitLineOf = (fact: CircuitFact): Line | null => {
  switch (fact.type) {
    case "CircuitOpened":
    case "CircuitReopened":
      return {
        level: "Warn",
        text: fact.type === "CircuitOpened" ? "a circuit opened" : "a circuit stays open: its probe failed",
        fields: { until: iso(fact.until), code: fact.error?.code ?? null }
      }
    case "CircuitClosed":
      return { level: "Info", text: "a circuit closed: its destination answers again", fields: {} }
    case "CircuitHeld":
      return { level: "Warn", text: "a circuit is held by a person", fields: {} }
    case "CircuitReset":
      return { level: "Info", text: "a circuit was reset by a person", fields: {} }
    case "CircuitProbed":
      return null
  }
}

const aboutOf = ({ messageId, queued, epoch, by = null }: Subject): Fields => ({
  messageId,
  org: queued.orgId,
  channel: queued.channel,
  destination: queued.destination,
  epoch,
  actor: by,
  ...(queued.traceparent === undefined ? {} : { traceId: queued.traceparent.slice(3, 35) })
})

export const logWatcher = Effect.map(Effect.context<never>(), (context): Watcher => {
  const run = Effect.runForkWith(context)
  const least = Context.get(context, References.MinimumLogLevel)
  const say = ({ level, text, fields }: Line, about: Fields) => {
    const known = Object.entries({ ...about, ...fields }).filter(([, value]) => value !== null)
    run(Effect.logWithLevel(level)(text).pipe(Effect.annotateLogs(Object.fromEntries(known))))
  }
  return {
    ...unwatched,
    stored: (subject, facts) => {
      for (const fact of facts) {
        const line = lineOf(fact)
        // Most lines are of delivered messages and below the level: a fiber for each is dear.
        if (line !== null && LogLevel.isGreaterThanOrEqualTo(line.level, least)) say(line, aboutOf(subject))
      }
    },
    storedInBulk: (all) => {
      const lines = all.flatMap(({ facts }) => facts.flatMap((fact) => lineOf(fact) ?? []))
      for (const [text, alike] of Map.groupBy(lines, (line) => line.text))
        say({ level: alike[0]!.level, text: `many at once: ${text}`, fields: { count: alike.length } }, {})
    },
    circuitChanged: (destination, facts) => {
      for (const fact of facts) {
        const line = circuitLineOf(fact)
        if (line !== null) say(line, { destination })
      }
    },
    leaseLost: () => {
      say(
        { level: "Warn", text: "another worker took over a batch of this one: its lease had run out", fields: {} },
        {}
      )
    }
  }
})
