/** Runs work over connections to Posthaste's broker; when either ends, both begin again after a pause. */
import { Cause, Duration, Effect, type Redacted, type Scope } from "effect"
import { connect, type Link } from "./client/connect.ts"
import { type Declaration, declareAll } from "./topology.ts"

interface Broker {
  readonly url: Redacted.Redacted
  readonly name: string
}

const CONNECT_WITHIN = Duration.seconds(10)
const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 5_000
const FRAME_MAX = 131_072

const troubleIn = (cause: Cause.Cause<unknown>): string => {
  const trouble = Cause.squash(cause)
  return trouble instanceof Error ? trouble.message : String(trouble)
}

/**
 * `needed` is declared before `work`, which gets one connection to receive and one to publish on: a blocked broker
 * blocks a whole connection. `report` gets whether the broker is away.
 */
export const sessions = <E, R>(
  { url, name }: Broker,
  task: string,
  needed: ReadonlyArray<Declaration>,
  work: (links: { readonly receiving: Link; readonly publishing: Link }) => Effect.Effect<unknown, E, R>,
  report: (away: boolean) => void
): Effect.Effect<never, never, Exclude<R, Scope.Scope>> =>
  Effect.suspend(() => {
    let said: string | null = null
    let pauseMs = PAUSE_MIN_MS
    const link = (purpose: string) =>
      connect({ url, name: `${name} ${task} ${purpose}`, timeout: CONNECT_WITHIN, frameMax: FRAME_MAX })

    const session = Effect.gen(function* () {
      const publishing = yield* link("out")
      const receiving = yield* link("in")
      yield* declareAll(publishing, needed)
      report(false)
      if (said !== null) yield* Effect.logInfo(`RabbitMQ is back: ${task}`)
      said = null
      pauseMs = PAUSE_MIN_MS
      yield* Effect.raceFirst(
        work({ receiving, publishing }),
        Effect.map(Effect.raceFirst(publishing.lost, receiving.lost), () => undefined)
      )
    }).pipe(Effect.scoped)

    const say = (problem: string) => {
      const before = said
      said = problem
      if (before === problem) return Effect.void
      report(true)
      return Effect.logError(`${task} wait for RabbitMQ: ${problem}`)
    }

    return session.pipe(
      Effect.matchCauseEffect({
        onSuccess: () => say("the connection was lost"),
        onFailure: (cause) => say(troubleIn(cause))
      }),
      Effect.andThen(
        Effect.suspend(() => {
          const wait = Duration.millis(pauseMs)
          pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)
          return Effect.sleep(wait)
        })
      ),
      Effect.forever
    )
  }) as Effect.Effect<never, never, Exclude<R, Scope.Scope>>
