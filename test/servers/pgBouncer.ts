/** A real PgBouncer in transaction mode before a database: one after another, its clients share a few connections. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import { installed } from "./installed.ts"
import { lastingPort } from "./lastingPort.ts"
import { temporaryDirectory } from "./leftovers.ts"
import { until } from "./until.ts"

/** The URL of the same database through it, for as long as the scope is open. */
export const pgBouncer = Effect.fnUntraced(function* (databaseUrl: string, connections: number) {
  const started = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const program = await installed("pgbouncer")
      const { hostname, port, username, password, pathname } = new URL(databaseUrl)
      const home = temporaryDirectory()
      chmodSync(home, 0o755)
      const own = await lastingPort()
      const name = pathname.slice(1)
      const server = `host=${hostname} port=${port} dbname=${name} user=${username} password=${decodeURIComponent(password)}`
      writeFileSync(
        join(home, "pgbouncer.ini"),
        `[databases]\n${name} = ${server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${own}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = ${connections}\n`
      )
      // It refuses to run as root.
      const user = process.getuid?.() === 0 ? ["-u", "nobody"] : []
      const child = spawn(program, [...user, join(home, "pgbouncer.ini")], { stdio: ["ignore", "pipe", "pipe"] })
      let printed = ""
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += String(chunk)))
      await until("PgBouncer answers", () => {
        if (child.exitCode !== null) throw new Error(`pgbouncer ended:\n${printed}`)
        return answers(own)
      })
      const url = new URL(databaseUrl)
      url.host = `127.0.0.1:${own}`
      return { child, home, url: url.href }
    }),
    ({ child, home }) =>
      Effect.promise(async () => {
        const ended = once(child, "exit")
        if (child.kill("SIGKILL")) await ended
        rmSync(home, { recursive: true, force: true })
      })
  )
  return started.url
})

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })
