/**
 * Effect's clock with the database's time, so that all processes write the same times however wrong their machines' clocks are. Between
 * questions, and while the database is away, the monotonic clock counts (time.ts). A start an hour off is refused: one clock is wrong.
 */
import { Clock, Context, DateTime, Duration, Effect, Layer, Schema } from "effect"
import { background } from "../../application/background.ts"
import { OwnClock } from "../../application/ports/OwnClock.ts"
import { Postgres, prepared, reading } from "./Postgres.ts"
import { type Answer, makeTime } from "./time.ts"

const timeStatement = prepared`select extract(epoch from clock_timestamp()) * 1000`

const ASKED_EVERY = Duration.seconds(10)
/** The first one also waits for a connection. */
const ASKED_FIRST = 3
const SAID_ABOVE_MS = 1_000
const REFUSED_ABOVE_MS = 3_600_000

export class ClocksDisagree extends Schema.TaggedError<ClocksDisagree>()("ClocksDisagree", {
  message: Schema.String
}) {}

const NANOS_PER_MILLI = 1e6

export const layer = Layer.effectContext(
  Effect.gen(function* () {
    const { lookups } = yield* Postgres
    const own = yield* Clock.Clock
    const monotonic = () => Number(own.monotonicTimeNanosUnsafe()) / NANOS_PER_MILLI

    const ask = Effect.suspend(() => {
      const asked = monotonic()
      return reading(
        lookups.rows(timeStatement, []),
        ([row]): Answer => ({
          asked,
          answered: monotonic(),
          said: Number(row![0])
        })
      )
    })

    const time = makeTime(yield* ask)
    for (let nth = 1; nth < ASKED_FIRST; nth++) time.learn(yield* ask)

    const now = () => time.at(monotonic())
    const offsetMs = () => own.currentTimeMillisUnsafe() - now()

    if (Math.abs(offsetMs()) > REFUSED_ABOVE_MS) {
      return yield* new ClocksDisagree({
        message: `the clock of this machine is ${inWords(offsetMs())} the database's: set the wrong one right, then start again`
      })
    }

    let saidOffset = false
    let saidJump = false
    const step = Effect.gen(function* () {
      yield* Effect.sleep(ASKED_EVERY)
      const answer = yield* ask
      const isBelieved = time.learn(answer)
      if (!isBelieved && !saidJump) {
        const told = DateTime.formatIso(DateTime.makeUnsafe(answer.said))
        yield* Effect.logError(
          `the database says that it is ${told}, more than an hour from what it said before: this process keeps the time it has until it is started again`
        )
      }
      saidJump = !isBelieved
      const isOff = Math.abs(offsetMs()) > SAID_ABOVE_MS
      if (isOff && !saidOffset) {
        yield* Effect.logWarning(
          `the clock of this machine is ${inWords(offsetMs())} the database's; Posthaste goes by the database's`
        )
      } else if (!isOff && saidOffset)
        yield* Effect.logInfo("the clock of this machine agrees with the database's again")
      saidOffset = isOff
    })
    yield* Effect.forkScoped(background("asking the database for its time", step))

    return Context.empty().pipe(Context.add(Clock.Clock, shown(own, now)), Context.add(OwnClock, { offsetMs }))
  })
)

const shown = (own: Clock.Clock, now: () => number): Clock.Clock => ({
  currentTimeMillisUnsafe: () => Math.floor(now()),
  currentTimeMillis: Effect.sync(() => Math.floor(now())),
  currentTimeNanosUnsafe: () => BigInt(Math.floor(now() * NANOS_PER_MILLI)),
  currentTimeNanos: Effect.sync(() => BigInt(Math.floor(now() * NANOS_PER_MILLI))),
  monotonicTimeNanosUnsafe: () => own.monotonicTimeNanosUnsafe(),
  monotonicTimeNanos: own.monotonicTimeNanos,
  sleep: (duration) => own.sleep(duration)
})

const inWords = (ms: number) => {
  const seconds = Math.round(Math.abs(ms) / 1000)
  const distance = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
  return `${distance} ${ms > 0 ? "ahead of" : "behind"}`
}
