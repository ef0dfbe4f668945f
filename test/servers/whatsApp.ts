/** The product with a stand-in for Meta, set up as a user sets it up, and ways to see what becomes of a message. */
import { Effect, Redacted } from "effect"
import { expect } from "vitest"
import * as StandInMeta from "../../demo/meta/StandInMeta.ts"
import { freshDatabase } from "./freshDatabase.ts"
import { api, product, startProduct } from "./product.ts"
import { until } from "./until.ts"

export interface Event {
  readonly type: string
  readonly status: string
  readonly data: Readonly<Record<string, unknown>>
}

export const APP_SECRET = "the-app-secret"
export const VERIFY_TOKEN = "the-verify-token"
export const templates = [{ name: "order_paid", language: "en_US", parameters: 1 }]

/** `roles` are those of the process that is spoken to; others are started by the test. `elsewhere`: settings of them all. */
export const whatsApp = Effect.fnUntraced(function* (
  options: StandInMeta.Options = {},
  roles = "api,worker,projector",
  elsewhere: Readonly<Record<string, string>> = {}
) {
  const meta = yield* StandInMeta.start({ templates, ...options })
  const database = Redacted.value(yield* freshDatabase)
  // Meta lies on the loopback address: that the operator named it is enough.
  // A worker looks for what others left behind three times in its lease, and one that stands still for longer loses it.
  const settings = {
    POSTHASTE_ALLOWED_NETWORKS: "",
    WHATSAPP_BASE_URL: meta.url,
    POSTHASTE_LEASE_MS: "5000",
    ...elsewhere
  }
  const server = yield* product(database, { ...settings, POSTHASTE_ROLES: roles })
  const inbound = `${server.url}/api/v1/webhooks/whatsapp/inbound`
  const asOrg = (org: string) => api(server.url!, org)
  const call = asOrg("acme")

  const account = async (phoneNumberId: string, given: object = {}, org = "acme", accessToken = phoneNumberId) => {
    const webhook = { url: inbound, appSecret: APP_SECRET, verifyToken: VERIFY_TOKEN }
    const number = { phoneNumberId, displayPhoneNumber: "15550783881", webhook }
    meta.register({ ...number, accessToken })
    const { status, body } = await asOrg(org)<{ id: string }>("POST", "/whatsapp-accounts", {
      ...{ phoneNumberId, accessToken, appSecret: APP_SECRET, verifyToken: VERIFY_TOKEN },
      ...{ timeoutMs: 30_000, reconcile: { waitMs: 60_000, otherwise: "deadLetter" } },
      ...given
    })
    expect(status).toBe(201)
    // Another token was good when the account was made.
    meta.register({ ...number, accessToken: phoneNumberId })
    return body.id
  }

  const send = async (request: object = {}, org = "acme") => {
    const { status, body } = await asOrg(org)<{ id: string }>("POST", "/outbound/messages", {
      ...{ channel: "whatsapp", to: "+49 151 12345678", payloadJson: { text: "Hello" } },
      ...request
    })
    expect(status).toBe(201)
    return body.id
  }

  const message = async (id: string) => (await call("GET", `/outbound/messages/${id}`)).body
  const events = async (id: string) =>
    (await call<{ items: ReadonlyArray<Event> }>("GET", `/outbound/messages/${id}/events`)).body.items
  /** Its history, once its status is one of these. */
  const reaches = async (id: string, ...statuses: ReadonlyArray<string>) => {
    let history: ReadonlyArray<Event> = []
    await until(`${statuses.join(" or ")} of ${id}`, async () => {
      history = await events(id)
      return statuses.includes(history.at(-1)?.status ?? "")
    })
    return history
  }
  const waiting = async () =>
    (await call<{ receipts: { waiting: number; parked: number } }>("GET", "/outbound/stats")).body.receipts

  return {
    ...{ meta, database, server, inbound, call, asOrg, account, send, message, events, reaches, waiting },
    /** Another process on the same database, until it is killed or the test ends. */
    another: (role: string, more: Readonly<Record<string, string>> = {}) =>
      Effect.acquireRelease(
        Effect.promise(() => startProduct(database, { ...settings, POSTHASTE_ROLES: role, ...more })),
        ({ process: child, kill }) => Effect.promise(async () => (child.exitCode === null ? kill() : undefined))
      )
  }
})

export const receiptsIn = (history: ReadonlyArray<Event>) =>
  history.flatMap(({ type, data }) => (type === "ReceiptRecorded" ? [data["receipt"]] : []))
export const typesOf = (history: ReadonlyArray<Event>) => history.map(({ type }) => type)
