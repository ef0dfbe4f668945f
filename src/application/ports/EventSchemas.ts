import { Context } from "effect"
import type { Fault } from "../errors.ts"

/**
 * What JSON Schema (draft 2020-12) says about events. A schema comes from a tenant: judging by it ends, whatever the schema
 * and the data are, and nothing outside of the schema is read.
 */
export class EventSchemas extends Context.Service<
  EventSchemas,
  {
    /** Why a schema can't be used, each with the path of the place; empty for one that can. */
    readonly faultsOfSchema: (schema: unknown) => ReadonlyArray<Fault>
    /** Where the data does not fit, below `data`. `version` names this very schema: it is prepared once. */
    readonly faultsOfData: (
      schema: { readonly version: string; readonly text: string },
      data: unknown
    ) => ReadonlyArray<Fault>
  }
>()("posthaste/application/ports/EventSchemas") {}
