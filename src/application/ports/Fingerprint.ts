import { Context } from "effect"

/**
 * `of`: a short name for a text, such that no second text with the same name can be found: SHA-256 over its UTF-8 bytes, as
 * lower-case hex. Equal texts, and only they, have equal fingerprints.
 *
 * `line`: the same as a UUID and under a key of the installation, so that who lacks the key can't find the text by trying.
 */
export class Fingerprint extends Context.Service<
  Fingerprint,
  { readonly of: (text: string) => string; readonly line: (text: string) => string }
>()("posthaste/application/ports/Fingerprint") {}
