/** Keys over a map, found by the hash alone. */
import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { ApiKeys } from "../../application/ports/ApiKeys.ts"
import { Memory } from "./Memory.ts"

export const layer = Layer.effect(
  ApiKeys,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { apiKeys } = tables

    return ApiKeys.of({
      create: (orgId, name, keyHash) =>
        Effect.sync(() => {
          const key = { id: randomUUID(), orgId, name, createdAt: now() }
          apiKeys.set(key.id, { ...key, keyHash })
          return key
        }),
      orgOf: (keyHash) =>
        Effect.sync(() => [...apiKeys.values()].find((key) => key.keyHash === keyHash)?.orgId ?? null),
      list: (orgId) =>
        Effect.sync(() =>
          [...apiKeys.values()]
            .filter((key) => orgId === null || key.orgId === orgId)
            .map(({ keyHash: _, ...key }) => key)
        ),
      revoke: (id) => Effect.sync(() => apiKeys.delete(id))
    })
  })
)
