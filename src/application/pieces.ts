/**
 * Work on many things, done in pieces of a millisecond or two. One thread works for everybody, so before each piece there is a wait for the
 * turn of whoever the work is for. Work of Posthaste's own has no turn and waits for nobody.
 */
import { Context, Effect, Result } from "effect"

/** Done in one piece. */
export const AT_ONCE = 25
/** As many bytes in one piece, unless one thing alone has more. */
export const BYTES_AT_ONCE = 64 * 1024

export interface Turn {
  /** Waits for a turn with so much left of it; 1 is a piece. */
  readonly wait: (share: number) => Effect.Effect<void>
  /** The work took more of the turn than was waited for. */
  readonly exceeded: (share: number) => void
}

export const waitsForNobody: Turn = { wait: () => Effect.void, exceeded: () => {} }

export const OwnTurn = Context.Reference<Turn>("posthaste/application/pieces/OwnTurn", {
  defaultValue: () => waitsForNobody
})

/** Calls `each` for each number below `count`, until it fails. It answers the bytes that it had to do with. */
export const inPieces = Effect.fnUntraced(function* <E>(
  count: number,
  each: (index: number) => Result.Result<number, E>
) {
  const turn = yield* OwnTurn
  for (let index = 0; index < count; ) {
    const end = Math.min(index + AT_ONCE, count)
    const share = (end - index) / AT_ONCE
    yield* turn.wait(share)
    let bytes = 0
    let done: Result.Result<number, E> = Result.succeed(0)
    while (index < end && bytes < BYTES_AT_ONCE && Result.isSuccess(done)) {
      done = each(index++)
      if (Result.isSuccess(done)) bytes += done.success
    }
    if (bytes > share * BYTES_AT_ONCE) turn.exceeded(bytes / BYTES_AT_ONCE - share)
    yield* Effect.fromResult(done)
  }
})

/** Each of these as `f` makes it. `bytesOf` tells how many bytes there are to do with for it. */
export const mapInPieces = Effect.fnUntraced(function* <A, B>(
  all: ReadonlyArray<A>,
  f: (one: A) => B,
  bytesOf: (one: A) => number = () => 0
) {
  const made: Array<B> = []
  yield* inPieces(all.length, (index) => {
    const one = all[index]!
    made.push(f(one))
    return Result.succeed(bytesOf(one))
  })
  return made
})
