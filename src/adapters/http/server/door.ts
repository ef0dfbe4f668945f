/**
 * The door: who asks is told from a request's headers, before a byte of its body is read and before anything is built for it, and
 * requests are taken up in turns (turns.ts). A key that was good lately stands for its org; everybody else asks as their address, so that
 * strangers wait behind strangers.
 */
import type { IncomingMessage } from "node:http"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Headers } from "effect/http"
import { Askers } from "../../../application/askers.ts"
import { BYTES_AT_ONCE, OwnTurn } from "../../../application/pieces.ts"
import { hashOf, storedHash } from "../keys/apiKey.ts"
import { addressOf, type Networks } from "./callers.ts"
import type { TakeUp } from "./makeServer.ts"
import { makePace, type Pace } from "./pace.ts"
import { makeTurns, PIECE, type Turns } from "./turns.ts"
import { makeWrongKeys, networkOf, type WrongKeys } from "./wrongKeys.ts"

export class Door extends Context.Service<
  Door,
  { readonly turns: Turns; readonly keys: WrongKeys; readonly pace: Pace; readonly takeUp: TakeUp }
>()("posthaste/adapters/http/server/door/Door") {}

const hashed = Symbol("the hash of a request's key")

/** The hash of a key that came with the request: the door asks for it, and then who lets the caller in. It is made once. */
export const keyHashOf = (request: object, key: string): Buffer => {
  const kept: { [hashed]?: { readonly key: string; readonly hash: Buffer } } = request
  const known = kept[hashed]
  if (known?.key === key) return known.hash
  const hash = hashOf(key)
  kept[hashed] = { key, hash }
  return hash
}

export const layer = (proxies: Networks | null) =>
  Layer.effect(
    Door,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const askers = yield* Askers
      const turns = makeTurns()
      const keys = makeWrongKeys()
      const pace = makePace(askers)
      const orgOf = (request: IncomingMessage): string | null => {
        const { authorization, "x-org-id": named } = request.headers
        const key = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1]
        const org = key === undefined ? undefined : keys.orgOf(storedHash(keyHashOf(request, key)), Date.now())
        return org === null ? `${named}` : (org ?? null)
      }
      const whoAsks = (request: IncomingMessage): string => {
        const { headers, socket } = request
        const org = orgOf(request)
        if (org !== null) {
          askers.asked(org, Number(clock.monotonicTimeNanosUnsafe()) / 1e6)
          return org
        }
        const asked = {
          remoteAddress: Option.fromNullishOr(socket.remoteAddress),
          headers: Headers.fromInput({ "x-forwarded-for": headers["x-forwarded-for"] })
        }
        // No org has a name with a space.
        return `at ${networkOf(addressOf(asked, proxies))}`
      }
      return { turns, keys, pace, takeUp: (request, begin) => turns.take(whoAsks(request), 1, begin) }
    })
  )

const turnOf = ({ turns }: Door["Service"], who: string, weight: number) =>
  Effect.callback<void>((resume) => turns.take(who, weight, () => resume(Effect.void)))

/** Waits for the turn of `who` to do a piece of work that takes a millisecond or two. */
export const pieceOf = (who: string, weight: number) => Effect.flatMap(Door, (door) => turnOf(door, who, weight))

/** The same for what is done with a text of so many bytes as a whole. */
export const pieceOfBytes = (who: string, bytes: number) =>
  pieceOf(who, Math.min(PIECE, Math.ceil((bytes / BYTES_AT_ONCE) * PIECE)))

/** What it does in pieces, it does in turns of `who`. */
export const inTurnsOf = <A, E, R>(who: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Door, (door) =>
    Effect.provideService(effect, OwnTurn, {
      wait: (share) => turnOf(door, who, Math.ceil(share * PIECE)),
      exceeded: (share) => door.turns.exceed(who, Math.ceil(share * PIECE))
    })
  )

/** At the pace of `org`. */
export const atPaceOf = <A, E, R>(org: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Door, ({ pace }) => pace.paced(org, effect))
