/** WhatsApp accounts over a map. Secrets stay redacted; nothing is at rest here, so nothing is encrypted. */
import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { type WhatsAppAccount, WhatsAppAccounts } from "../../../src/application/ports/WhatsAppAccounts.ts"
import { changesOf, pauseOf } from "../../../src/domain/destination/changes.ts"
import { DestinationId } from "../../../src/domain/ids.ts"
import { freeLane, instructLane } from "../deliver/lanes.ts"
import { Memory } from "../Memory.ts"
import { noterOf } from "../store/appendToJournal.ts"

const channel = "whatsapp"

export const layer = Layer.effect(
  WhatsAppAccounts,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const { whatsAppAccounts } = tables
    const noting = noterOf(memory, channel)
    const rows = () => [...whatsAppAccounts.values()]
    const find = (orgId: string, id: DestinationId) => {
      const row = whatsAppAccounts.get(id)
      return row?.account.orgId === orgId ? row : null
    }
    const ofOrg = (orgId: string) =>
      rows()
        .map(({ account }) => account)
        .filter((account) => account.orgId === orgId)
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const ofNumber = (phoneNumberId: string) =>
      rows().find(({ account }) => account.phoneNumberId === phoneNumberId) ?? null

    const instructed = (account: WhatsAppAccount): WhatsAppAccount => {
      instructLane(memory, account)
      return account
    }

    return WhatsAppAccounts.of({
      create: (orgId, phoneNumberId, settings, secrets) =>
        noting((note) => {
          if (ofNumber(phoneNumberId) !== null) return "NumberTaken" as const
          const id = DestinationId.make(randomUUID())
          const [createdAt, updatedAt] = [now(), now()]
          const account = { ...settings, id, orgId, phoneNumberId, paused: false, version: 1, createdAt, updatedAt }
          whatsAppAccounts.set(id, { account, secrets })
          note(id, [{ type: "DestinationCreated", orgId, channel }])
          return instructed(account)
        }),
      get: (orgId, id) => Effect.sync(() => find(orgId, id)?.account ?? null),
      list: (orgId, { cursor, limit }) =>
        Effect.sync(() => {
          const left = ofOrg(orgId).filter(({ id }) => cursor === null || id > cursor)
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.id : null }
        }),
      update: (orgId, id, change, given) =>
        noting((note) => {
          const row = find(orgId, id)
          if (row === null) return null
          const account = { ...row.account, ...change, version: row.account.version + 1, updatedAt: now() }
          whatsAppAccounts.set(id, { account, secrets: { ...row.secrets, ...given } })
          note(id, changesOf({ orgId, channel }, change, given))
          return instructed(account)
        }),
      setPaused: (orgId, id, paused) =>
        noting((note) => {
          const row = find(orgId, id)
          if (row === null) return null
          const account = row.account.paused === paused ? row.account : { ...row.account, paused, updatedAt: now() }
          whatsAppAccounts.set(id, { ...row, account })
          if (account !== row.account) note(id, [pauseOf({ orgId, channel }, paused)])
          return instructed(account)
        }),
      remove: (orgId, id) =>
        noting((note) => {
          if (find(orgId, id) === null) return false
          note(id, [{ type: "DestinationRemoved", orgId, channel }])
          freeLane(memory, id)
          return whatsAppAccounts.delete(id)
        }),
      named: (orgId, from) =>
        Effect.sync(() =>
          ofOrg(orgId)
            .filter(({ id, phoneNumberId }) => from === null || id === from || phoneNumberId === from)
            .slice(0, 2)
        ),
      calling: (orgId, id) =>
        Effect.sync(() => {
          const row = find(orgId, id)
          return row === null ? null : { account: row.account, accessToken: row.secrets.accessToken }
        }),
      receiving: (phoneNumberId) =>
        Effect.sync(() => {
          const row = ofNumber(phoneNumberId)
          return row === null ? null : { account: row.account, appSecret: row.secrets.appSecret }
        }),
      knowsVerifyToken: (verifyToken) =>
        Effect.sync(() =>
          rows().some(({ secrets }) => Redacted.value(secrets.verifyToken) === Redacted.value(verifyToken))
        ),
      unverified: Effect.sync(() => rows().flatMap(({ account }) => (account.verifySignature ? [] : [account])))
    })
  })
)
