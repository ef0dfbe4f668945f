import type { KeyTerms } from "../../../src/application/ports/ApiKeys.ts"

/** Of a key that may all that keys could before they had terms, unless the change says otherwise. */
export const termsOf = (name: string, change: Partial<KeyTerms> = {}): KeyTerms => ({
  name,
  scopes: null,
  expiresAt: null,
  networks: null,
  limits: {},
  prefix: "ph_live_abcd",
  ...change
})
