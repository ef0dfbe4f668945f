import { Effect } from "effect"
import { freePort } from "../../src/adapters/embedded-postgres/freePort.ts"

/** A loopback port for a server that comes and goes. */
export const lastingPort = (): Promise<number> => Effect.runPromise(freePort)
