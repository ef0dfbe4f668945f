/** The broker of the example: the one that `AMQP_URL` names, or one of its own, as the tests start it. */
import { Effect, Schema } from "effect"
import { find } from "../../test/servers/installed.ts"
import { ownRabbitMQ } from "../../test/servers/rabbitmq.ts"

export class NoRabbitMQ extends Schema.TaggedError<NoRabbitMQ>()("NoRabbitMQ", { message: Schema.String }) {}

/** Debian's own command changes the user and forgets the environment. This is where the one is that it calls. */
const behind = (program: string): string =>
  program.startsWith("/usr/sbin/") ? (find("rabbitmq-server", ["/usr/lib/rabbitmq/bin"]) ?? program) : program

/** Null for the broker that `AMQP_URL` names. Fails where there is none, before anything else is started. */
export const program = Effect.suspend(() => {
  if (process.env["AMQP_URL"]) return Effect.succeed(null)
  const found = find("rabbitmq-server")
  return found === null
    ? Effect.fail(
        new NoRabbitMQ({
          message:
            "this example needs RabbitMQ 3.10 or later: install rabbitmq-server so that it is on PATH, or name a broker in AMQP_URL"
        })
      )
    : Effect.succeed(behind(found))
})

/** The URL of a broker that runs for as long as the scope is open. */
export const start = (program: string | null) =>
  program === null ? Effect.succeed(process.env["AMQP_URL"]!) : Effect.map(ownRabbitMQ(program), ({ url }) => url)
