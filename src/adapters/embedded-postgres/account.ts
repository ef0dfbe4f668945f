/**
 * Under which account the server runs, and how to run a program under it.
 *
 * PostgreSQL refuses to run as root. Started by root it therefore runs as `postgres`, or as `nobody` where
 * there is no such user; no account is created. Root's clone often lies where nobody else may enter
 * (`/root` is 0700). Then the server alone gets the right to pass file permissions, and nothing else of
 * root's: its programs and its data may stay where they are.
 */
import { execFile } from "node:child_process"
import { statSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { EmbeddedPostgresFailed } from "./EmbeddedPostgresFailed.ts"

export interface Account {
  readonly uid: number
  readonly gid: number
  readonly passesPermissions: boolean
}

export interface Command {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly options: {
    readonly cwd: string
    readonly env: Record<string, string>
    readonly uid?: number
    readonly gid?: number
  }
}

/** The server needs none of our environment, which holds keys; and `PG…` variables must not steer it. */
const options = { cwd: "/", env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" } }

/** `account` null: as whoever we are. */
export const commandAs = (account: Account | null, program: string, args: ReadonlyArray<string>): Command => {
  if (account === null) return { file: program, args, options }
  const { uid, gid } = account
  if (!account.passesPermissions) return { file: program, args, options: { ...options, uid, gid } }
  return {
    file: "setpriv",
    args: [
      `--reuid=${uid}`,
      `--regid=${gid}`,
      "--clear-groups",
      // PostgreSQL looks for itself with access(2), which asks what the *real* user may do and honours
      // capabilities of an ordinary user only under this bit.
      "--securebits=+no_setuid_fixup",
      "--inh-caps=+dac_override",
      "--ambient-caps=+dac_override",
      program,
      ...args
    ],
    options
  }
}

export const run = (command: Command): Effect.Effect<string, EmbeddedPostgresFailed> =>
  Effect.callback((resume) => {
    const child = execFile(command.file, command.args, command.options, (error, stdout, stderr) =>
      resume(
        error === null
          ? Effect.succeed(stdout.trim())
          : Effect.fail(new EmbeddedPostgresFailed({ message: lastLine(stderr) ?? error.message }))
      )
    )
    return Effect.sync(() => child.kill())
  })

const lastLine = (text: string): string | undefined => text.trim().split("\n").at(-1) || undefined

/** `owner` is who owns the data already there: it stays theirs. Null when there is none yet. */
export const accountFor = Effect.fn("embedded.accountFor")(function* (
  paths: ReadonlyArray<string>,
  owner: { readonly uid: number; readonly gid: number } | null
): Effect.fn.Return<Account | null, EmbeddedPostgresFailed> {
  const self = process.geteuid?.()
  if (self !== 0) {
    if (owner === null || owner.uid === self) return null
    return yield* new EmbeddedPostgresFailed({
      message: `The data belongs to user ${owner.uid}: start Posthaste as that user or as root, or choose another POSTHASTE_DATA_DIR`
    })
  }
  const { uid, gid } = owner === null || owner.uid === 0 ? yield* unprivileged : owner
  const passesPermissions = !paths.every((path) => mayReach(path, uid, gid))
  const account = { uid, gid, passesPermissions }
  if (passesPermissions) {
    yield* run(commandAs(account, "true", [])).pipe(
      Effect.mapError(
        ({ message }) =>
          new EmbeddedPostgresFailed({
            message: `PostgreSQL does not run as root, and user ${uid} may not enter ${paths.join(" or ")} (setpriv: ${message}). Start Posthaste as an ordinary user, move it, or set DATABASE_URL`
          })
      )
    )
  }
  return account
})

const idOf = (flag: "-u" | "-g", name: string) =>
  run({ file: "id", args: [flag, name], options }).pipe(Effect.map(Number))

const lookUp = (name: string) => Effect.all({ uid: idOf("-u", name), gid: idOf("-g", name) })

const unprivileged = lookUp("postgres").pipe(
  Effect.catch(() => lookUp("nobody")),
  Effect.mapError(
    () =>
      new EmbeddedPostgresFailed({
        message:
          "PostgreSQL does not run as root and there is neither a user postgres nor nobody: start Posthaste as an ordinary user or set DATABASE_URL"
      })
  )
)

/** Whether every directory down to `path` lets that user through, by its permission bits. */
const mayReach = (path: string, uid: number, gid: number): boolean => {
  const { mode, uid: owner, gid: group } = statSync(path)
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001
  const parent = dirname(path)
  return (mode & bit) !== 0 && (parent === path || mayReach(parent, uid, gid))
}
