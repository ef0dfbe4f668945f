/** What the log says of stored facts, at each level. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Logger, type LogLevel, References } from "effect"
import { logWatcher } from "../../src/application/logWatcher.ts"
import type { Subject } from "../../src/application/ports/Telemetry.ts"
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

const said = Effect.fnUntraced(function* (level: LogLevel.LogLevel) {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
  yield* Effect.map(logWatcher, ({ stored }) => {
    stored(subject, delivered, at)
    stored(subject, refused, at)
  }).pipe(Effect.provide(Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, level))))
  return lines
})

describe("the log of stored facts", () => {
  it.effect("tells of what went well at the level debug only", () =>
    Effect.gen(function* () {
      expect(yield* said("Debug")).toEqual(["Debug a message was delivered", "Warn a message was refused for good"])
      expect(yield* said("Info")).toEqual(["Warn a message was refused for good"])
      expect(yield* said("Error")).toEqual([])
    })
  )
})
