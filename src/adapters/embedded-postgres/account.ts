/**
 * The account of the server. PostgreSQL refuses root: under root it runs as `postgres`, else as `nobody`. One
 * capability, to ignore file permissions, lets it pass directories such as `/root` (0700).
 */
import { execFile } from "node:child_process"
import { statSync } from "node:fs"
import { dirname } from "node:path"
import { Effect, Schema } from "effect"

/** Failure of the built-in server; `message` is one line for the operator. */
export class EmbeddedPostgresFailed extends Schema.TaggedError<EmbeddedPostgresFailed>()("EmbeddedPostgresFailed", {
  message: Schema.String
}) {}

export const failed = (message: string) => new EmbeddedPostgresFailed({ message })

export interface Account {
  readonly uid: number
  readonly gid: number
  readonly passesPermissions: boolean
}

interface Command {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly options: {
    readonly cwd: string
    readonly env: Record<string, string>
    readonly uid?: number
    readonly gid?: number
  }
}

/** Withholds keys in the environment, and `PG…` variables, which would change the server. */
const options = { cwd: "/", env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" } }

/** Null: the process's own account. */
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
      // PostgreSQL's access(2) judges the real user, whose capabilities count only under this bit.
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
          : Effect.fail(failed(withRemedy(lastLine(stderr) ?? error.message)))
      )
    )
    return Effect.sync(() => child.kill())
  })

/** Packages copied without symbolic links lack the libraries. */
export const withRemedy = (reason: string): string =>
  /error while loading shared libraries|Library not loaded/.test(reason)
    ? `The built-in PostgreSQL is not complete: install the packages again (npm ci), or set DATABASE_URL (${reason})`
    : reason

const lastLine = (text: string): string | undefined => text.trim().split("\n").at(-1) || undefined

/** `owner` owns the data; null before there are any. */
export const accountFor = Effect.fn("embedded.accountFor")(function* (
  paths: ReadonlyArray<string>,
  owner: { readonly uid: number; readonly gid: number } | null
): Effect.fn.Return<Account | null, EmbeddedPostgresFailed> {
  const self = process.geteuid?.()
  if (self !== 0) {
    if (owner === null || owner.uid === self) return null
    return yield* failed(
      `The data belongs to user ${owner.uid}: start Posthaste as that user or as root, or choose another POSTHASTE_DATA_DIR`
    )
  }
  const { uid, gid } = owner === null || owner.uid === 0 ? yield* unprivileged : owner
  const passesPermissions = !paths.every((path) => mayReach(path, uid, gid))
  const account = { uid, gid, passesPermissions }
  if (passesPermissions) {
    yield* run(commandAs(account, "true", [])).pipe(
      Effect.mapError(({ message }) =>
        failed(
          `PostgreSQL does not run as root, and user ${uid} may not enter ${paths.join(" or ")} (setpriv: ${message}). Start Posthaste as an ordinary user, move it, or set DATABASE_URL`
        )
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
  Effect.mapError(() =>
    failed(
      "PostgreSQL does not run as root and there is neither a user postgres nor nobody: start Posthaste as an ordinary user or set DATABASE_URL"
    )
  )
)

/** True when the permission bits of every directory above `path` admit the user. */
const mayReach = (path: string, uid: number, gid: number): boolean => {
  const { mode, uid: owner, gid: group } = statSync(path)
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001
  const parent = dirname(path)
  return (mode & bit) !== 0 && (parent === path || mayReach(parent, uid, gid))
}
