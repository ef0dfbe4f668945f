/**
 * The catalogue of an org's event types. It is enforced as soon as one of its types is: then events of unknown types
 * and wishes for them are refused. The schema of a type is held against events where the type itself is enforced.
 */
import { Effect, Result } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import { EventSchemas } from "../ports/EventSchemas.ts"
import { type EventType, type EventTypeDefinition, EventTypes } from "../ports/EventTypes.ts"
import type { Fault } from "../ports/errors.ts"

export const TEXT_MAX = 64 * 1024

/** A larger number reads as infinity, which JSON can't show. */
const isShowable = (value: unknown): boolean =>
  typeof value === "object" && value !== null
    ? Object.values(value).every(isShowable)
    : typeof value !== "number" || Number.isFinite(value)

/** An example that does not fit its own schema would be sent as a test. */
const faultsOf = Effect.fnUntraced(function* ({ schema, example }: EventTypeDefinition) {
  const schemas = yield* EventSchemas
  const long = Object.entries({ schema, example }).flatMap(
    ([field, text]): ReadonlyArray<Fault> =>
      text !== null && text.length > TEXT_MAX ? [{ field, reason: `must have at most ${TEXT_MAX} characters` }] : []
  )
  if (long.length > 0) return long
  const large = Object.entries({ schema, example }).flatMap(
    ([field, text]): ReadonlyArray<Fault> =>
      text !== null && !isShowable(JSON.parse(text)) ? [{ field, reason: "must hold no number beyond 1.8e308" }] : []
  )
  if (large.length > 0 || schema === null) return large
  const faults = schemas.faultsOfSchema(JSON.parse(schema))
  if (faults.length > 0 || example === null) return faults
  return schemas
    .faultsOfData({ version: `example ${schema}`, text: schema }, JSON.parse(example))
    .map(({ field, reason }) => ({ field: field.replace(/^data/, "example"), reason }))
})

export const createEventType = Effect.fnUntraced(function* (
  orgId: OrgId,
  name: string,
  definition: EventTypeDefinition
) {
  const faults = yield* faultsOf(definition)
  return faults.length > 0
    ? Result.fail(faults)
    : Result.succeed(yield* (yield* EventTypes).create(orgId, name, definition))
})

export const changeEventType = Effect.fnUntraced(function* (
  orgId: OrgId,
  name: string,
  definition: EventTypeDefinition
) {
  const types = yield* EventTypes
  if ((yield* types.get(orgId, name)) === null) return null
  const faults = yield* faultsOf(definition)
  if (faults.length > 0) return Result.fail(faults)
  const changed = yield* types.change(orgId, name, definition)
  return changed === null ? null : Result.succeed(changed)
})

export const objectionsToEvent = Effect.fnUntraced(function* (orgId: OrgId, eventType: string, data: string) {
  const { isEnforced, type } = yield* (yield* EventTypes).entry(orgId, eventType)
  if (!isEnforced) return []
  if (type === null) return [{ field: "eventType", reason: notInCatalogue(eventType) }]
  return type.enforce ? yield* fitting(type, data) : []
})

const fitting = Effect.fnUntraced(function* ({ id, version, schema }: EventType, data: string) {
  if (schema === null) return []
  return (yield* EventSchemas).faultsOfData({ version: `${id} ${version}`, text: schema }, JSON.parse(data))
})

export const objectionsToWishes = Effect.fnUntraced(function* (orgId: OrgId, wishes: unknown) {
  if (!Array.isArray(wishes)) return []
  const unfulfilled = new Set(yield* (yield* EventTypes).unfulfilled(orgId, wishes as ReadonlyArray<string>))
  return wishes.flatMap(
    (wish: string, n): ReadonlyArray<Fault> =>
      unfulfilled.has(wish) ? [{ field: `eventTypes[${n}]`, reason: notInCatalogue(wish) }] : []
  )
})

const notInCatalogue = (name: string) => `is not in this org's catalogue of event types: ${name}`
