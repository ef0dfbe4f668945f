import { Context, type DateTime } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"

export interface EventTypeDefinition {
  readonly description: string | null
  /** JSON texts, as they were written. */
  readonly schema: string | null
  readonly example: string | null
  readonly enforce: boolean
}

export interface EventType extends EventTypeDefinition {
  readonly id: string
  readonly orgId: OrgId
  readonly name: string
  readonly version: number
  readonly archived: boolean
  readonly createdAt: DateTime.Utc
  readonly updatedAt: DateTime.Utc
}

/** The catalogue's answer about one name. */
export interface Entry {
  /** True if any type of the org is enforced and not archived: events of unknown types are then refused. */
  readonly isEnforced: boolean
  readonly type: EventType | null
}

/** The catalogue of the types of an org's events. Each change commits with its fact. `entry` may be a second old. */
export class EventTypes extends Context.Service<
  EventTypes,
  {
    /** `Taken` when the org has a type of this name, archived or not. */
    readonly create: (orgId: OrgId, name: string, definition: EventTypeDefinition) => FromStore<EventType | "Taken">
    /** Replaces the whole definition, and brings an archived type back. Null when there is none. */
    readonly change: (orgId: OrgId, name: string, definition: EventTypeDefinition) => FromStore<EventType | null>
    readonly archive: (orgId: OrgId, name: string) => FromStore<EventType | null>
    readonly get: (orgId: OrgId, name: string) => FromStore<EventType | null>
    readonly list: (orgId: OrgId, archived: boolean, page: PageRequest) => FromStore<Page<EventType>>
    readonly entry: (orgId: OrgId, name: string) => FromStore<Entry>
    /** The wishes of an endpoint that no type of an enforced catalogue fulfils. */
    readonly unfulfilled: (orgId: OrgId, wishes: ReadonlyArray<string>) => FromStore<ReadonlyArray<string>>
  }
>()("posthaste/application/ports/EventTypes") {}
