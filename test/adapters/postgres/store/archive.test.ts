import { Effect, Layer } from "effect"
import * as PostgresQueue from "../../../../src/adapters/postgres/deliver/PostgresQueue.ts"
import * as Postgres from "../../../../src/adapters/postgres/Postgres.ts"
import * as PostgresPulse from "../../../../src/adapters/postgres/PostgresPulse.ts"
import * as PostgresPorts from "../../../../src/setup/postgresPorts.ts"
import { archiveContract, derivedContract } from "../../../contracts/store/archiveContract.ts"
import { freshDatabase } from "../../../servers/freshDatabase.ts"

const ports = Layer.unwrap(
  Effect.map(freshDatabase, (url) =>
    Layer.merge(
      PostgresPorts.truth({ url }),
      PostgresQueue.layer.pipe(Layer.provide(PostgresPulse.layer), Layer.provide(Postgres.layer({ url })))
    )
  )
)

archiveContract("postgres", ports)
derivedContract("postgres", ports)
