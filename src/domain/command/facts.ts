/**
 * The fact of a command that was refused after its caller had gone (it came in a transaction). It stands alone on the
 * stream `command-<id>`. It names fields and reasons.
 */
import { Schema } from "effect"
import { OrgId } from "../ids.ts"
import { codecOf, ERASED, type FactIn, fact } from "../recorded.ts"

export const CommandRefused = fact(
  "CommandRefused",
  {
    orgId: OrgId,
    /** `SendMessage`, `PublishEvent`. */
    command: Schema.NonEmptyString,
    key: Schema.NullOr(Schema.String),
    /** As the HTTP API names it. */
    problem: Schema.NonEmptyString,
    status: Schema.Int,
    detail: Schema.String
  },
  { key: null, detail: ERASED }
)

export const recorded = { "CommandRefused@1": CommandRefused } as const
export type CommandFact = FactIn<typeof recorded>

export const { toRecorded, fromRecorded } = codecOf<CommandFact>(recorded)

export const journalOfCommand = (id: string) => `command-${id}` as const
