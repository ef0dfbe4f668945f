import { Context } from "effect"
import type { Restoration } from "../../domain/message/explanation/restoration.ts"
import type { FromStore } from "../errors.ts"

/** When the store was found to know no more than an earlier moment, because it was restored from a backup. Oldest first. */
export class Restorations extends Context.Service<
  Restorations,
  {
    readonly all: FromStore<ReadonlyArray<Restoration>>
  }
>()("posthaste/application/ports/Restorations") {}
