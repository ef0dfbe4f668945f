/**
 * The account that the server runs under, and how to run a program under it.
 *
 * PostgreSQL refuses to run as root. When root starts Posthaste, the server runs as `postgres`, or as `nobody` where there is
 * no such user; no account is created. A clone of root's is often in a directory that no other account may enter (`/root` is
 * 0700). Then the server gets one right of root's, to pass file permissions: its programs and its data may stay there.
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

/** Our environment holds keys, and `PG…` variables would change what the server does: it gets neither. */
const options = { cwd: "/", env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" } }

/** Under our own account when `account` is null. */
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
      // PostgreSQL asks access(2), which judges by the *real* user and honours the capabilities of an ordinary user only
      // under this bit.
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
          : Effect.fail(new EmbeddedPostgresFailed({ message: withRemedy(lastLine(stderr) ?? error.message) }))
      )
    )
    return Effect.sync(() => child.kill())
  })

/** A copy of the packages without symbolic links leaves the server without its libraries. */
export const withRemedy = (reason: string): string =>
  /error while loading shared libraries|Library not loaded/.test(reason)
    ? `The built-in PostgreSQL is not complete: install the packages again (npm ci), or set DATABASE_URL (${reason})`
    : reason

const lastLine = (text: string): string | undefined => text.trim().split("\n").at(-1) || undefined

/** `owner` owns the data, and keeps it; null before there are data. */
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

/** Whether the permission bits of every directory down to `path` let that user through. */
const mayReach = (path: string, uid: number, gid: number): boolean => {
  const { mode, uid: owner, gid: group } = statSync(path)
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001
  const parent = dirname(path)
  return (mode & bit) !== 0 && (parent === path || mayReach(parent, uid, gid))
}
