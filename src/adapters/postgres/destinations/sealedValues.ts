import { createHmac } from "node:crypto"
import { Redacted } from "effect"
import type { SealingKey } from "./sealing.ts"

export const secretOf = (orgId: string, id: string, name: string) => `destination_secret:${orgId}:${id}:${name}`
export const headersOf = (orgId: string, id: string) => `destination_headers:${orgId}:${id}`

export const parametersOf = (orgId: string, id: string, setting: string) =>
  `destination_parameters:${orgId}:${id}:${setting}`

const SEALED = "?sealed:"

/** Seals the parameters of a URL: any may be a credential. */
export const urlSealed = (url: string, seal: (parameters: string) => string): string => {
  const at = url.indexOf("?")
  return at === -1 ? url : `${url.slice(0, at)}${SEALED}${seal(url.slice(at))}`
}

/** The sealed parameters of a stored URL; null where it has none, or where they are as they were stored before they were sealed. */
export const sealedIn = (stored: string): string | null => {
  const at = stored.indexOf(SEALED)
  return at === -1 ? null : stored.slice(at + SEALED.length)
}

export const urlOpened = (stored: string, open: (sealed: string) => string): string => {
  const sealed = sealedIn(stored)
  return sealed === null ? stored : `${stored.slice(0, stored.indexOf(SEALED))}${open(sealed)}`
}

export const lookupHash = (key: SealingKey, channel: string, lookup: Redacted.Redacted): Buffer =>
  createHmac("sha256", Redacted.value(key))
    .update(`${channel}:${Redacted.value(lookup)}`)
    .digest()
