/**
 * A real RabbitMQ (3.10 or later) of a test's own: on ports, with data, a node name and an Erlang port mapper of its
 * own. It is the one that is installed, or Debian's, or at last the one that `AMQP_URL` names, which can be neither
 * killed nor told anything.
 *
 * Its URL and its data outlive `kill` and `stop`: the same broker is there when it is started again.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { installed } from "./installed.ts"
import { lastingPort } from "./lastingPort.ts"
import { noteProcess, ownDirectory } from "./leftovers.ts"
import { PATIENCE_MS } from "./until.ts"

export interface RabbitMQ {
  readonly url: string
  /** Runs `rabbitmqctl` with these arguments and answers its output. */
  readonly ctl: (...args: ReadonlyArray<string>) => Promise<string>
  /** SIGKILL, as the kernel would. */
  readonly kill: () => Promise<void>
  /** SIGTERM: the broker closes its connections and ends in good order. */
  readonly stop: () => Promise<void>
  /** Starts the broker that was killed or stopped, and waits until clients are served. */
  readonly start: () => Promise<void>
  /** Closes all connections and the listener, and keeps the node. */
  readonly stopApp: () => Promise<void>
  readonly startApp: () => Promise<void>
  /**
   * Makes what was declared outlive a SIGKILL. RabbitMQ 3.10 writes the registry of quorum queues to disk minutes
   * later: a broker that is killed before never finds the leader of a new queue again. One that is killed soon after a
   * declaration may have forgotten the binding of a durable queue. Stopping its application writes both.
   */
  readonly settle: () => Promise<void>
  /** Connections that publish are blocked until the alarm is cleared. */
  readonly raiseAlarm: () => Promise<void>
  readonly clearAlarm: () => Promise<void>
  /** Cuts every client off once. */
  readonly closeConnections: () => Promise<void>
  /** SIGSTOP and SIGCONT: the broker says nothing, and no connection breaks. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** What the broker wrote to its log up to now. */
  readonly log: () => string
}

/** A quiet machine needs four seconds. */
const READY_WITHIN_MS = 2 * PATIENCE_MS
const STARTS_MAX = 3

/** One of its own for as long as the scope is open. `program` is RabbitMQ's own `rabbitmq-server`. */
export const ownRabbitMQ = Effect.fnUntraced(function* (program: string) {
  const directory = yield* ownDirectory
  for (let starts = 1; ; starts++) {
    const broker = yield* Effect.promise(() => prepare(program, directory))
    yield* Effect.addFinalizer(() => Effect.promise(broker.end))
    const isUp = yield* Effect.promise(() =>
      broker.begin().then(
        () => true,
        (error) => {
          if (starts === STARTS_MAX) throw error
          return false
        }
      )
    )
    // Somebody else may have taken one of its ports in between: the next one has others.
    if (isUp) return broker.rabbitmq
    yield* Effect.promise(broker.end)
  }
})

const prepare = async (program: string, home: string) => {
  const directory = join(home, randomUUID())
  mkdirSync(directory)
  const [port, distribution, mapper] = [await lastingPort(), await lastingPort(), await lastingPort()]
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const log = file("broker.log", "")
  const env = {
    PATH: process.env["PATH"],
    // The cookie that lets rabbitmqctl in lies here.
    HOME: directory,
    RABBITMQ_NODENAME: `posthaste-test-${process.pid}-${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    ERL_EPMD_PORT: String(mapper),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_MNESIA_BASE: join(directory, "data"),
    RABBITMQ_LOG_BASE: directory,
    RABBITMQ_CONFIG_FILE: file(
      "rabbitmq.conf",
      // A full disk or a small machine is no part of a test; alarms are raised by `raiseAlarm`.
      `listeners.tcp.1 = 127.0.0.1:${port}\nlog.console = false\nlog.file = broker.log\ndisk_free_limit.absolute = 1MB\n`
    ),
    // What this machine has configured for its own broker stays out.
    RABBITMQ_CONF_ENV_FILE: file("rabbitmq-env.conf", ""),
    RABBITMQ_ADVANCED_CONFIG_FILE: file("advanced.config", "[]."),
    RABBITMQ_ENABLED_PLUGINS_FILE: file("enabled_plugins", "[]."),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: [
      "-kernel inet_dist_use_interface {127,0,0,1}",
      // Idle schedulers would spin, on cores that other tests need.
      "+sbwt none +sbwtdcpu none +sbwtdio none"
    ].join(" "),
    // The Erlang machine takes the place of the script, so that a signal reaches the broker itself.
    RUNNING_UNDER_SYSTEMD: "true"
  }

  const children: Array<ChildProcess> = []
  /** In a session of its own: Ctrl-C ends the tests, and they end the broker. */
  const run = (command: string, args: ReadonlyArray<string>) => {
    const output = openSync(log, "a")
    const child = spawn(command, args, { env, cwd: home, detached: true, stdio: ["ignore", output, output] })
    child.on("error", () => {})
    closeSync(output)
    if (child.pid !== undefined) noteProcess(home, child.pid)
    children.push(child)
    return child
  }
  const hasEnded = (child: ChildProcess) =>
    child.pid === undefined || child.exitCode !== null || child.signalCode !== null
  const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
    if (hasEnded(child)) return
    const ended = once(child, "exit")
    child.kill(signal)
    await ended
  }

  const answering = async (name: string, child: ChildProcess, at: number, greeting: Buffer) => {
    const deadline = performance.now() + READY_WITHIN_MS
    while (!(await answers(at, greeting))) {
      const reason = hasEnded(child) ? "ended" : performance.now() > deadline ? "does not answer" : null
      if (reason !== null) throw new Error(`${name} ${reason}:\n${readFileSync(log, "utf8")}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  let broker: ChildProcess | null = null
  const running = (): ChildProcess => {
    if (broker === null || hasEnded(broker)) throw new Error("the broker does not run")
    return broker
  }
  const ctl = async (...args: ReadonlyArray<string>) => {
    const { stdout } = await promisify(execFile)(join(dirname(program), "rabbitmqctl"), ["-q", ...args], { env })
    return stdout
  }
  const stopApp = async () => void (await ctl("stop_app"))
  const startApp = async () => void (await ctl("start_app"))

  const rabbitmq: RabbitMQ = {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    ctl,
    kill: () => end(running(), "SIGKILL"),
    stop: () => end(running(), "SIGTERM"),
    start: async () => {
      if (broker !== null && !hasEnded(broker)) throw new Error("the broker runs already")
      broker = run(program, [])
      await answering("RabbitMQ", broker, port, protocolHeader)
    },
    stopApp,
    startApp,
    settle: async () => {
      await stopApp()
      await startApp()
    },
    raiseAlarm: async () => void (await ctl("set_vm_memory_high_watermark", "absolute", "1")),
    clearAlarm: async () => void (await ctl("set_vm_memory_high_watermark", "0.6")),
    closeConnections: async () => void (await ctl("close_all_connections", "closed by a test")),
    freeze: () => void running().kill("SIGSTOP"),
    thaw: () => void running().kill("SIGCONT"),
    log: () => readFileSync(log, "utf8")
  }
  return {
    rabbitmq,
    begin: async () => {
      const epmd = await installed("epmd")
      // The node would start one itself, as a daemon that nobody ends.
      const child = run(epmd, ["-port", String(mapper), "-address", "127.0.0.1"])
      await answering("epmd", child, mapper, namesRequest)
      await rabbitmq.start()
    },
    end: async () => {
      for (const child of children) await end(child, "SIGKILL")
    }
  }
}

/** How a client of the broker begins; it is answered once the broker has started as a whole. */
const protocolHeader = Buffer.from("AMQP\x00\x00\x09\x01", "latin1")
/** How a client of the port mapper asks for all names. */
const namesRequest = Buffer.from("\x00\x01n", "latin1")

const answers = (port: number, greeting: Buffer): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(greeting))
    const say = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on("data", () => say(true))
    socket.on("error", () => say(false))
    socket.on("close", () => say(false))
    socket.setTimeout(5_000, () => say(false))
  })

/** The broker of this URL: anybody's, so nothing is done to it. */
const given = (url: string): RabbitMQ => {
  const refuse = (): never => {
    throw new Error("AMQP_URL names a broker that is not ours: this test needs rabbitmq-server on this machine")
  }
  return {
    ...{ url, ctl: refuse, kill: refuse, stop: refuse, start: refuse, stopApp: refuse, startApp: refuse },
    ...{ settle: refuse, raiseAlarm: refuse, clearAlarm: refuse, closeConnections: refuse },
    ...{ freeze: refuse, thaw: refuse, log: refuse }
  }
}

/** Runs one for as long as the scope is open. It takes 4 s to start. */
export const rabbitmq = Effect.gen(function* () {
  const url = process.env["AMQP_URL"]
  const program = yield* Effect.promise(() =>
    installed("rabbitmq-server").catch((error) => {
      if (url) return null
      throw new Error(`${error.message}, or name a broker in AMQP_URL`)
    })
  )
  return program === null ? given(url!) : yield* ownRabbitMQ(program)
})
