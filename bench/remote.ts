/**
 * A part of the bench in a process of its own, asked over IPC.
 *
 * The part calls `serve` with its handlers; whoever starts it gets `ask`, typed by those handlers. A part that dies
 * makes every open question fail, so that a crash never looks like a slow run.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

/** `never` lets any handler fit; `ask` gives each its own argument and result back. */
type Handlers = Readonly<Record<string, (argument: never) => unknown>>

interface Question {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}
interface Answer {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

export interface Remote<H extends Handlers> {
  readonly pid: number
  readonly ask: <K extends keyof H & string>(
    name: K,
    ...argument: Parameters<H[K]>
  ) => Promise<Awaited<ReturnType<H[K]>>>
  readonly stop: () => Promise<void>
}

/** Answers the parent's questions until the parent hangs up. */
export const serve = (handlers: Handlers): void => {
  process.on("message", async ({ id, name, argument }: Question) => {
    try {
      const value: unknown = await handlers[name]!(argument as never)
      process.send!({ id, value } satisfies Answer)
    } catch (error) {
      process.send!({
        id,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error)
      } satisfies Answer)
    }
  })
  process.on("disconnect", () => process.exit(0))
}

/** Starts `bench/<file>`, or what a URL names. */
export const startRemote = <H extends Handlers>(file: string): Remote<H> => {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), {
    serialization: "advanced",
    // A profiler or debugger asked for on the command line is not for everybody.
    execArgv: []
  })
  const open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>()
  let asked = 0
  child.on("message", ({ id, value, error }: Answer) => {
    const question = open.get(id)!
    open.delete(id)
    if (error === undefined) question.resolve(value as never)
    else question.reject(new Error(`${file}: ${error}`))
  })
  child.on("exit", (code, signal) => {
    for (const question of open.values()) question.reject(new Error(`${file} ended (${signal ?? code})`))
    open.clear()
  })
  return {
    pid: child.pid!,
    ask: (name, ...[argument]) =>
      new Promise((resolve, reject) => {
        const id = asked++
        open.set(id, { resolve, reject })
        child.send({ id, name, argument } satisfies Question)
      }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, "exit")
      if (child.connected) child.disconnect()
      await exit
    }
  }
}
