/** Keys over a map, found by the hash alone. */
import { randomUUID } from "node:crypto"
import { DateTime, Effect, Layer } from "effect"
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
      create: Effect.fnUntraced(function* (orgId, terms, keyHash) {
        const actor = yield* CommandedBy
        const key = { id: randomUUID(), orgId, ...terms, createdAt: now(), lastUsedAt: null }
        apiKeys.set(key.id, { ...key, keyHash, revoked: false })
        const { name, scopes, expiresAt, networks, limits } = terms
        const fact = toRecorded({ type: "KeyCreated", orgId, name, scopes, expiresAt, networks, limits })
        addToJournal(tables, journalOfKey(key.id), [fact], now(), actor)
        return key
      }),
      holderOf: (keyHash) =>
        Effect.sync(() => {
          const key = [...apiKeys.values()].find((one) => one.keyHash === keyHash)
          if (key === undefined) return null
          const { id, orgId, scopes, expiresAt, networks, limits, revoked } = key
          return { id, orgId, scopes, expiresAt, networks, limits, revoked }
        }),
      used: (id) =>
        Effect.sync(() => {
          const key = apiKeys.get(id)
          if (key !== undefined) apiKeys.set(id, { ...key, lastUsedAt: now() })
        }),
      living: (ids) =>
        Effect.sync(() => {
          const isLiving = (id: string) => {
            const key = apiKeys.get(id)
            const isOver = key?.expiresAt != null && DateTime.isLessThanOrEqualTo(key.expiresAt, now())
            return key !== undefined && !key.revoked && !isOver
          }
          return new Set(ids.filter(isLiving))
        }),
      list: (orgId) =>
        Effect.sync(() =>
          [...apiKeys.values()]
            .filter((key) => !key.revoked && (orgId === null || key.orgId === orgId))
            .map(({ keyHash: _, revoked: __, ...key }) => key)
        ),
      revoke: Effect.fnUntraced(function* (id, whose) {
        const actor = yield* CommandedBy
        const key = apiKeys.get(id)
        if (key === undefined || key.revoked || (whose !== null && key.orgId !== whose)) return false
        addToJournal(tables, journalOfKey(id), [toRecorded({ type: "KeyRevoked", orgId: key.orgId })], now(), actor)
        apiKeys.set(id, { ...key, revoked: true })
        return true
      })
    })
  })
)
