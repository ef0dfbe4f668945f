import { Context } from "effect"
import type { Fault } from "./errors.ts"

/**
 * JSON Schema (draft 2020-12) for events. A schema comes from a tenant: judging by it ends, whatever schema and data
 * are, and reads nothing outside of the schema.
 */
export class EventSchemas extends Context.Service<
  EventSchemas,
  {
    readonly faultsOfSchema: (schema: unknown) => ReadonlyArray<Fault>
    /** The faults of the data, with paths below `data`. `version` names this very schema: it is prepared once. */
    readonly faultsOfData: (
      schema: { readonly version: string; readonly text: string },
      data: unknown
    ) => ReadonlyArray<Fault>
  }
>()("posthaste/application/ports/EventSchemas") {}
