/** What the sealed values of a destination are bound to, and how a secret is found that is only stored sealed. */
import { createHmac } from "node:crypto"
import { Redacted } from "effect"
import type { SealingKey } from "./sealing.ts"

export const secretOf = (orgId: string, id: string, name: string) => `destination_secret:${orgId}:${id}:${name}`
export const headersOf = (orgId: string, id: string) => `destination_headers:${orgId}:${id}`

export const lookupHash = (key: SealingKey, channel: string, lookup: Redacted.Redacted): Buffer =>
  createHmac("sha256", Redacted.value(key))
    .update(`${channel}:${Redacted.value(lookup)}`)
    .digest()
