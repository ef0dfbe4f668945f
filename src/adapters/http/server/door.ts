/**
 * The door: who asks is told from a request's headers, before a byte of its body is read and before anything is built for it, and
 * requests are taken up in turns (turns.ts). A key that was good lately stands for its org; everybody else asks as their address, so that
 * strangers wait behind strangers.
 */
import type { IncomingMessage } from "node:http"
import { Context, Effect, Layer, Option } from "effect"
import { Headers } from "effect/http"
import { hashOf, storedHash } from "../keys/apiKey.ts"
import { addressOf, type Networks } from "./callers.ts"
import type { TakeUp } from "./connections.ts"
import { makeTurns, type Turns } from "./turns.ts"
import { makeWrongKeys, networkOf, type WrongKeys } from "./wrongKeys.ts"

export class Door extends Context.Service<
  Door,
  { readonly turns: Turns; readonly keys: WrongKeys; readonly takeUp: TakeUp }
>()("posthaste/adapters/http/server/door/Door") {}

export const layer = (proxies: Networks | null) =>
  Layer.sync(Door, () => {
    const turns = makeTurns()
    const keys = makeWrongKeys()
    const whoAsks = ({ headers, socket }: IncomingMessage): string => {
      const key = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1]
      const org = key === undefined ? undefined : keys.orgOf(storedHash(hashOf(key)), Date.now())
      if (org !== undefined) return org ?? `${headers["x-org-id"]}`
      const remoteAddress = Option.fromNullishOr(socket.remoteAddress)
      // No org has a name with a space.
      return `at ${networkOf(addressOf({ remoteAddress, headers: Headers.fromInput({ "x-forwarded-for": headers["x-forwarded-for"] }) }, proxies))}`
    }
    return { turns, keys, takeUp: (request, begin) => turns.take(whoAsks(request), 1, begin) }
  })

/** Waits for the turn of `who` to do a piece of work that takes a millisecond or two. */
export const pieceOf = (who: string, weight: number) =>
  Effect.flatMap(Door, ({ turns }) =>
    Effect.callback<void>((resume) => turns.take(who, weight, () => resume(Effect.void)))
  )
