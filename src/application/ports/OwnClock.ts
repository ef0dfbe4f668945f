import { Context } from "effect"

/**
 * The offset of this machine's clock from the store's in milliseconds; null until it was measured. The application's
 * `Clock` shows the store's time.
 */
export class OwnClock extends Context.Service<OwnClock, { readonly offsetMs: () => number | null }>()(
  "posthaste/application/ports/OwnClock"
) {}
