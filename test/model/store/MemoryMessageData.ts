/** Bodies, answers and idempotency keys, over the maps that the event store writes. */
import { Effect, Layer } from "effect"
import type { UsedKey } from "../../../src/application/ports/EventStore.ts"
import { type DataOfMessage, MessageData } from "../../../src/application/ports/MessageData.ts"
import type { MessageId, OrgId } from "../../../src/domain/ids.ts"
import { Memory, type Tables } from "../Memory.ts"

const usedKeyOf = ({ idempotencyKeys }: Tables, id: MessageId): UsedKey | null => {
  for (const [text, { messageId, requestHash }] of idempotencyKeys) {
    if (messageId !== id) continue
    const blank = text.indexOf(" ")
    return { orgId: text.slice(0, blank) as OrgId, key: text.slice(blank + 1), requestHash }
  }
  return null
}

const belongingOf = (tables: Tables, messageId: MessageId): DataOfMessage => ({
  messageId,
  key: usedKeyOf(tables, messageId),
  body: tables.bodies.get(messageId) ?? null,
  responses: [...(tables.responses.get(messageId) ?? [])]
    .map(([name, body]) => {
      const [epoch, attempt] = name.split("/")
      return { epoch: Number(epoch), attempt: Number(attempt), body }
    })
    .toSorted((a, b) => a.epoch - b.epoch || a.attempt - b.attempt)
})

const restore = (
  { bodies, responses, idempotencyKeys }: Tables,
  { messageId, key, body, ...rest }: DataOfMessage
): void => {
  if (body !== null && !bodies.has(messageId)) bodies.set(messageId, body)
  if (key !== null && !idempotencyKeys.has(`${key.orgId} ${key.key}`)) {
    idempotencyKeys.set(`${key.orgId} ${key.key}`, { messageId, requestHash: key.requestHash })
  }
  const known = responses.get(messageId) ?? new Map<string, string>()
  for (const { epoch, attempt, body: answer } of rest.responses) {
    if (!known.has(`${epoch}/${attempt}`)) known.set(`${epoch}/${attempt}`, answer)
  }
  if (known.size > 0) responses.set(messageId, known)
}

export const layer = Layer.effect(
  MessageData,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return MessageData.of({
      load: (ids) =>
        Effect.sync(
          () =>
            new Map(
              ids
                .map((id) => belongingOf(tables, id))
                .filter(({ key, body, responses }) => key !== null || body !== null || responses.length > 0)
                .map((data) => [data.messageId, data] as const)
            )
        ),
      restore: (dataOfMessages) =>
        Effect.sync(() => {
          for (const data of dataOfMessages) restore(tables, data)
        })
    })
  })
)
