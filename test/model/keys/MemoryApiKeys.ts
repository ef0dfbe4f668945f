/** Keys over a map, found by the hash alone. */
import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { ApiKeys } from "../../../src/application/ports/ApiKeys.ts"
import { journalOfKey } from "../../../src/domain/destination/changes.ts"
import { toRecorded } from "../../../src/domain/destination/facts.ts"
import { addToJournal, Memory } from "../Memory.ts"

export const layer = Layer.effect(
  ApiKeys,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { apiKeys } = tables

    return ApiKeys.of({
      create: Effect.fnUntraced(function* (orgId, name, keyHash) {
        const actor = yield* CommandedBy
        const key = { id: randomUUID(), orgId, name, createdAt: now() }
        apiKeys.set(key.id, { ...key, keyHash })
        addToJournal(tables, journalOfKey(key.id), [toRecorded({ type: "KeyCreated", orgId, name })], now(), actor)
        return key
      }),
      holderOf: (keyHash) =>
        Effect.sync(() => {
          const key = [...apiKeys.values()].find((one) => one.keyHash === keyHash)
          return key === undefined ? null : { id: key.id, orgId: key.orgId }
        }),
      list: (orgId) =>
        Effect.sync(() =>
          [...apiKeys.values()]
            .filter((key) => orgId === null || key.orgId === orgId)
            .map(({ keyHash: _, ...key }) => key)
        ),
      revoke: Effect.fnUntraced(function* (id) {
        const actor = yield* CommandedBy
        const key = apiKeys.get(id)
        if (key === undefined) return false
        const { orgId } = key
        addToJournal(tables, journalOfKey(id), [toRecorded({ type: "KeyRevoked", orgId })], now(), actor)
        return apiKeys.delete(id)
      })
    })
  })
)
