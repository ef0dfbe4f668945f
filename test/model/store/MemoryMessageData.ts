/** Bodies, answers and idempotency keys, over the maps that the event store writes. */
import { Effect, Layer } from "effect"
import type { AttemptResponse, UsedKey } from "../../../src/application/ports/EventStore.ts"
import { type DataOfEvent, type DataOfMessage, MessageData } from "../../../src/application/ports/MessageData.ts"
import type { MessageId, OrgId } from "../../../src/domain/ids.ts"
import { Memory, type Tables } from "../Memory.ts"

/** An org's name has no space in it. */
const orgAndKeyIn = (text: string) => {
  const blank = text.indexOf(" ")
  return { orgId: text.slice(0, blank) as OrgId, key: text.slice(blank + 1) }
}

const usedKeyOf = ({ idempotencyKeys }: Tables, id: MessageId): UsedKey | null => {
  for (const [text, { messageId, requestHash }] of idempotencyKeys) {
    if (messageId !== id) continue
    return { ...orgAndKeyIn(text), requestHash }
  }
  return null
}

const belongingOf = (tables: Tables, messageId: MessageId): DataOfMessage => ({
  messageId,
  queued: tables.messages.get(messageId) ?? null,
  key: usedKeyOf(tables, messageId),
  body: tables.bodies.get(messageId) ?? null,
  bodyOf: tables.sharing.get(messageId) ?? null,
  responses: [...(tables.responses.get(messageId) ?? [])]
    .map(([name, answer]) => {
      const [epoch, attempt] = name.split("/")
      return { epoch: Number(epoch), attempt: Number(attempt), ...answer }
    })
    .toSorted((a, b) => a.version - b.version)
})

const restore = (
  { messages, bodies, sharing, responses, idempotencyKeys }: Tables,
  { messageId, queued, key, body, bodyOf, ...rest }: DataOfMessage
): void => {
  if (queued !== null && !messages.has(messageId)) messages.set(messageId, queued)
  if (bodyOf !== null && !bodies.has(messageId)) sharing.set(messageId, bodyOf)
  if (body !== null && !bodies.has(messageId)) bodies.set(messageId, body)
  if (key !== null && !idempotencyKeys.has(`${key.orgId} ${key.key}`)) {
    idempotencyKeys.set(`${key.orgId} ${key.key}`, { messageId, requestHash: key.requestHash })
  }
  const known =
    responses.get(messageId) ??
    new Map<string, Pick<AttemptResponse, "body" | "headers"> & { readonly version: number }>()
  for (const { epoch, attempt, ...answer } of rest.responses) {
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
                .filter(
                  ({ key, body, bodyOf, responses }) =>
                    key !== null || body !== null || bodyOf !== null || responses.length > 0
                )
                .map((data) => [data.messageId, data] as const)
            )
        ),
      loadEvents: (ids) =>
        Effect.sync(
          () =>
            new Map(
              ids
                .map((eventId): DataOfEvent => {
                  const [text, used] = [...tables.eventKeys].find(([, used]) => used.eventId === eventId) ?? []
                  const key = text === undefined ? null : { ...orgAndKeyIn(text), requestHash: used!.requestHash }
                  return { eventId, key, body: tables.eventBodies.get(eventId) ?? null }
                })
                .filter(({ key, body }) => key !== null || body !== null)
                .map((data) => [data.eventId, data] as const)
            )
        ),
      restoreEvents: (dataOfEvents) =>
        Effect.sync(() => {
          for (const { eventId, key, body } of dataOfEvents) {
            if (body !== null && !tables.eventBodies.has(eventId)) tables.eventBodies.set(eventId, body)
            if (key !== null) tables.eventKeys.set(`${key.orgId} ${key.key}`, { eventId, requestHash: key.requestHash })
          }
        }),
      restore: (dataOfMessages) =>
        Effect.sync(() => {
          for (const data of dataOfMessages) restore(tables, data)
        })
    })
  })
)
