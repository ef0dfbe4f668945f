import { Context } from "effect"

/**
 * Short names for texts: `of` is SHA-256 over the UTF-8 bytes, as lower-case hex. `line` is a UUID under a key of the
 * installation, so that without the key the text can't be found by trying.
 */
export class Fingerprint extends Context.Service<
  Fingerprint,
  { readonly of: (text: string) => string; readonly line: (text: string) => string }
>()("posthaste/application/ports/Fingerprint") {}
