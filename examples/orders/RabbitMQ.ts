/** The broker of the example: the one that `AMQP_URL` names, or one of its own, on ports and data of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { delimiter, join } from "node:path"
import { Effect, Schema } from "effect"
import { freePort } from "../../src/adapters/embedded-postgres/freePort.ts"

export class NoRabbitMQ extends Schema.TaggedError<NoRabbitMQ>()("NoRabbitMQ", { message: Schema.String }) {}

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const find = (program: string): string | undefined =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((directory) => join(directory, program))
    .find(isExecutable)

/** Debian's own command changes the user and forgets the environment. This is the one that it calls. */
const behind = (program: string): string => {
  const debian = "/usr/lib/rabbitmq/bin/rabbitmq-server"
  return program.startsWith("/usr/sbin/") && isExecutable(debian) ? debian : program
}

/** Fails where there is none, before anything else is started. */
export const program = Effect.suspend(() => {
  const found = process.env["AMQP_URL"] ? "" : find("rabbitmq-server")
  return found === undefined
    ? Effect.fail(
        new NoRabbitMQ({
          message:
            "this example needs RabbitMQ 3.10 or later: install rabbitmq-server so that it is on PATH, or name a broker in AMQP_URL"
        })
      )
    : Effect.succeed(behind(found))
})

/** The URL of a broker that runs for as long as the scope is open. */
export const start = Effect.fnUntraced(function* (program: string, home: string) {
  if (program === "") return process.env["AMQP_URL"]!
  const directory = join(home, "rabbitmq")
  mkdirSync(directory)
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const [port, distribution, mapper] = [yield* freePort, yield* freePort, yield* freePort]
  const env = {
    PATH: process.env["PATH"],
    HOME: directory,
    RABBITMQ_NODENAME: `posthaste-orders-${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    ERL_EPMD_PORT: String(mapper),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_MNESIA_BASE: join(directory, "data"),
    RABBITMQ_LOG_BASE: directory,
    RABBITMQ_CONFIG_FILE: file(
      "rabbitmq.conf",
      `listeners.tcp.1 = 127.0.0.1:${port}\ndisk_free_limit.absolute = 1MB\n`
    ),
    RABBITMQ_CONF_ENV_FILE: file("rabbitmq-env.conf", ""),
    RABBITMQ_ADVANCED_CONFIG_FILE: file("advanced.config", "[]."),
    RABBITMQ_ENABLED_PLUGINS_FILE: file("enabled_plugins", "[]."),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
    // The Erlang machine takes the place of the script, so that a signal reaches the broker itself.
    RUNNING_UNDER_SYSTEMD: "true"
  }
  const run = (command: string, args: ReadonlyArray<string>) =>
    Effect.acquireRelease(
      Effect.sync(() => spawn(command, args, { env, cwd: directory, detached: true, stdio: "ignore" })),
      (child) => Effect.promise(() => end(child))
    )
  // The broker would start one itself, as a daemon that nobody ends.
  const epmd = find("epmd")
  if (epmd !== undefined) yield* run(epmd, ["-port", String(mapper), "-address", "127.0.0.1"])
  const broker = yield* run(program, [])
  while (!(yield* Effect.promise(() => answers(port)))) {
    if (broker.exitCode !== null) return yield* new NoRabbitMQ({ message: `RabbitMQ ended at its start (${program})` })
    yield* Effect.sleep("100 millis")
  }
  return `amqp://guest:guest@127.0.0.1:${port}`
})

const end = async (child: ChildProcess): Promise<void> => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once("exit", resolve))
  // Its data goes, too: there is nothing to put in order.
  child.kill("SIGKILL")
  await ended
}

/** Whether a client is answered, which is when the broker has started as a whole. */
const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.from("AMQP\x00\x00\x09\x01", "latin1")))
    const say = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on("data", () => say(true))
    socket.on("error", () => say(false))
    socket.on("close", () => say(false))
    socket.setTimeout(5_000, () => say(false))
  })
