import { Context } from "effect"

/**
 * A short name for a text, such that no second text with the same name can be found: SHA-256 over its UTF-8 bytes, as
 * lower-case hex. Equal texts, and only they, have equal fingerprints.
 */
export class Fingerprint extends Context.Service<Fingerprint, { readonly of: (text: string) => string }>()(
  "posthaste/application/ports/Fingerprint"
) {}
