/** What the log says of stored facts, at each level. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Logger, type LogLevel, References } from "effect"
import { logWatcher } from "../../src/application/logWatcher.ts"
import type { Subject, Watcher } from "../../src/application/ports/Telemetry.ts"
import { presets } from "../../src/domain/delivery/retry.ts"
import { DestinationId, MessageId, OrgId } from "../../src/domain/ids.ts"
import type { MessageFact } from "../../src/domain/message/facts.ts"

const at = DateTime.makeUnsafe(0)
const destination = DestinationId.make("00000000-0000-7000-8000-000000000002")
const subject: Subject = {
  messageId: MessageId.make("00000000-0000-7000-8000-000000000001"),
  epoch: 1,
  dueAt: at,
  queued: {
    ...{ type: "MessageQueued", orgId: OrgId.make("acme"), channel: "webhook", destination, to: destination },
    ...{ eventType: null, templateCode: null, dossierId: null, orderingKey: null, correlationId: null, metadata: null },
    ...{ retry: presets.webhook, acceptedAt: at, dueAt: at, expiresAt: null }
  }
}
const delivered: ReadonlyArray<MessageFact> = [
  { type: "AttemptSucceeded", attempt: 1, status: 200, providerMessageId: null, durationMs: 4 },
  { type: "MessageDelivered", proof: "response" }
]
const refused: ReadonlyArray<MessageFact> = [
  { type: "MessageFailed", by: "response", error: { code: "http_400", message: "", retryable: false } }
]

/** The lines of what a watcher is told, with the fields that a test looks at. */
const linesOf = Effect.fnUntraced(function* (level: LogLevel.LogLevel, tell: (watcher: Watcher) => void) {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message, fiber }) => {
    const { actor, count } = fiber.getRef(References.CurrentLogAnnotations)
    const fields = [actor === undefined ? "" : ` by ${actor}`, count === undefined ? "" : ` × ${count}`]
    lines.push(`${logLevel} ${String(message)}${fields.join("")}`)
  })
  yield* Effect.map(logWatcher, tell).pipe(
    Effect.provide(Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, level)))
  )
  return lines
})

const said = (level: LogLevel.LogLevel) =>
  linesOf(level, ({ stored }) => {
    stored(subject, delivered, at)
    stored(subject, refused, at)
  })

const cancelled: ReadonlyArray<MessageFact> = [{ type: "MessageCancelled", reason: "what a caller wrote" }]
const expired: ReadonlyArray<MessageFact> = [{ type: "MessageExpired", expiresAt: at }]
const tooOld: ReadonlyArray<MessageFact> = [
  { type: "MessageDeadLettered", reason: "too old", error: { code: "too_old", message: "", retryable: false } }
]

describe("the log of stored facts", () => {
  it.effect("tells of what went well at the level debug only", () =>
    Effect.gen(function* () {
      expect(yield* said("Debug")).toEqual(["Debug a message was delivered", "Warn a message was refused for good"])
      expect(yield* said("Info")).toEqual(["Warn a message was refused for good"])
      expect(yield* said("Error")).toEqual([])
    })
  )

  it.effect("has a line for what a person ends, with who it was and without what the person wrote", () =>
    Effect.gen(function* () {
      const lines = yield* linesOf("Info", ({ stored }) => {
        stored({ ...subject, by: "key:7" }, cancelled, at)
        stored({ ...subject, by: "operator" }, [{ type: "MessageDismissed", reason: "secret" }], at)
        stored(subject, expired, at)
      })
      expect(lines).toEqual([
        "Info a message was cancelled by key:7",
        "Info a dead letter was dismissed by a person by operator",
        "Info a message expired"
      ])
    })
  )

  it.effect("has one line of each kind for many at once, with their number", () =>
    Effect.gen(function* () {
      const all = [expired, tooOld, expired, expired].map((facts) => ({ subject, facts }))
      expect(yield* linesOf("Info", ({ storedInBulk }) => storedInBulk(all, at))).toEqual([
        "Info many at once: a message expired × 3",
        "Warn many at once: a message was given up × 1"
      ])
    })
  )
})
