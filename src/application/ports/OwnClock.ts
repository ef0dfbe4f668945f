import { Context } from "effect"

/**
 * How wrong the clock of this process's machine is: how far it is ahead of the store's, in milliseconds; null until it was
 * measured. The application itself never reads that clock: its `Clock` shows the store's time.
 */
export class OwnClock extends Context.Service<OwnClock, { readonly offsetMs: () => number | null }>()(
  "posthaste/application/ports/OwnClock"
) {}
