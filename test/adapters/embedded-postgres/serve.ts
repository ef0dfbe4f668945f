/** A process of its own that uses the embedded server until it is told to end: `serve.ts <directory>`. */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Redacted } from "effect"
import pg from "pg"
import { start } from "../../../src/adapters/embedded-postgres/EmbeddedPostgres.ts"

const serve = Effect.gen(function* () {
  const { url } = yield* start({ directory: process.argv[2]! })
  const client = new pg.Client({ connectionString: Redacted.value(url) })
  client.on("error", () => {})
  yield* Effect.promise(() => client.connect())
  // What a worker does at the end: it takes its time, and still has something to write.
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => client.query("select 1")).pipe(
      Effect.delay("300 millis"),
      Effect.andThen(Console.log("drained")),
      Effect.andThen(Effect.promise(() => client.end())),
      Effect.ignoreCause
    )
  )
  yield* Console.log(`url ${Redacted.value(url)}`)
  return yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.tapError((error) => Console.log(`failed ${error.message}`))
)

NodeRuntime.runMain(serve, { disableErrorReporting: true })
