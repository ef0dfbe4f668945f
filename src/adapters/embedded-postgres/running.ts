/** The embedded server that another Posthaste of this machine uses right now: for a second look at its data. */
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { Redacted } from "effect"
import { USER } from "./cluster.ts"
import { DATABASE } from "./EmbeddedPostgres.ts"
import { postmasterOf } from "./postmaster.ts"

/** Null when none runs, or when it does not say yet where it listens. */
export const running = (directory: string): Redacted.Redacted | null => {
  const home = resolve(directory)
  const passwordFile = join(home, "postgres-password")
  const port = postmasterOf(join(home, "postgres"))?.port
  if (!port || !existsSync(passwordFile)) return null
  const password = readFileSync(passwordFile, "utf8").trim()
  return Redacted.make(`postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`)
}
