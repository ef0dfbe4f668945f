/** The troubles of the installation, as several answers show them. */
import { Schema } from "effect"
import type { Trouble as Known } from "../../../application/processes/Troubles.ts"
import { troubleReasons } from "../../../application/processes/Troubles.ts"
import { Moment, Text } from "../server/fields.ts"

const fields = {
  reason: Schema.Literals(troubleReasons),
  says: Schema.String.annotate({ description: "In a sentence." }),
  since: Schema.NullOr(Moment).annotate({ description: "Null when nobody knows." })
}

export const troubles = Schema.Array(Schema.Struct(fields).annotate({ identifier: "Trouble" })).annotate({
  description: "What is wrong with this Posthaste as a whole, as it was at most a second ago. Empty when nothing is."
})

export const troublesInFull = Schema.Array(
  Schema.Struct({
    ...fields,
    transaction: Schema.NullOr(
      Schema.Struct({
        kind: Schema.Literals(["transaction", "prepared", "slot"]).annotate({
          description: "An open transaction, a prepared one, or a replication slot."
        }),
        pid: Schema.NullOr(Schema.Int),
        name: Schema.String.annotate({
          description: "What its program calls itself; the name of a prepared transaction or of a replication slot."
        }),
        database: Text,
        since: Schema.NullOr(Moment)
      })
    ).annotate({ description: "Whose transaction it is, where it is one." })
  }).annotate({ identifier: "TroubleInFull" })
).annotate({ description: "What is wrong with this Posthaste as a whole. Empty when nothing is." })

export const troubleJson = ({ transaction: _, ...told }: Known) => told
