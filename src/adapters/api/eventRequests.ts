/** Requests about events, by any way in: shapes, decoding, answers. */
import { Schema } from "effect"
import type { EventRequest as AcceptedEvent, Publication } from "../../application/events/publishEvents.ts"
import { headerText } from "../../application/ports/fields.ts"
import type { EventView } from "../../domain/event/event.ts"
import { isEventType } from "../../domain/event/eventTypes.ts"
import { decoderOf, verbatim } from "./decoding.ts"
import { optional } from "./fields.ts"
import { commonFields, IdempotencyKey, ofKey } from "./messageRequests.ts"
import { eventBlocked, invalidFields, keyReused, orgSuspended, type Problem, unfit } from "./problem.ts"

export const EventType = headerText(256).check(
  Schema.makeFilter(
    (type) => isEventType(type) || "must not hold an asterisk: endpoints say with it which types they want"
  )
)

const requestFields = {
  eventType: EventType.annotateKey({ description: "Which endpoints are told: those whose eventTypes have this type." }),
  data: Schema.Unknown.annotate(verbatim).annotateKey({
    description:
      'Any JSON value. Every endpoint gets it byte for byte as it is written here, in {"type", "timestamp", "data"}.'
  }),
  ...commonFields
}

const example = { eventType: "order.paid", data: { order: 4711, total: 99.9 } }

export const EventRequest = Schema.Struct(requestFields).annotate({ identifier: "EventRequest", examples: [example] })

export const eventBatchExamples = [{ ...example, idempotencyKey: "order-4711-paid" }]

/** In a batch each event brings its own key. */
export const EventBatchEntry = Schema.Struct({
  ...requestFields,
  idempotencyKey: optional(IdempotencyKey, ofKey)
}).annotate({ identifier: "EventBatchEntry", examples: eventBatchExamples })

export const decodeEvent = decoderOf(EventRequest)
export const decodeEventEntry = decoderOf(EventBatchEntry)

/** `data`: the member's text as it was written. */
export const eventRequestOf = (
  request: typeof EventRequest.Type,
  data: string,
  idempotencyKey: string | null
): AcceptedEvent => ({
  eventType: request.eventType,
  dossierId: request.dossierId ?? null,
  orderingKey: request.orderingKey ?? null,
  correlationId: request.correlationId ?? null,
  metadata: request.metadata ?? null,
  deliverAt: request.deliverAt ?? null,
  expiresAt: request.expiresAt ?? null,
  data,
  idempotencyKey
})

type EventAnswer =
  | { readonly status: number; readonly event: EventView; readonly problem?: undefined }
  | { readonly status: number; readonly problem: Problem; readonly event?: undefined }

/** `path`: the event's place in the request. */
export const answerToEvent = (publication: Publication, path = ""): EventAnswer => {
  switch (publication.type) {
    case "Published":
      return { status: 201, event: publication.event }
    case "AlreadyPublished":
      return { status: 200, event: publication.event }
    case "KeyReused":
      return eventRefusal(keyReused())
    case "Suspended":
      return eventRefusal(orgSuspended(publication.reason))
    case "Refused": {
      const faults = publication.faults.map(({ field, reason }) => ({ field: `${path}${field}`, reason }))
      const problem = { request: invalidFields, consent: eventBlocked, catalogue: unfit }[publication.by]
      return eventRefusal(problem(faults))
    }
  }
}

const eventRefusal = (problem: Problem): EventAnswer => ({ status: problem.body.status, problem })
