/** The resource of orgs, for the operator. */
import { Effect, identity, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Retry, text } from "../../../application/ports/fields.ts"
import { type LimitName, limitNames, Orgs, retentionNames } from "../../../application/ports/Orgs.ts"
import { OrgId } from "../../../domain/ids.ts"
import { OperatorAccess } from "../server/auth.ts"
import { base, bodyErrors, titled, words } from "../server/endpoints.ts"
import { listOf, Moment, optional, paging, Text } from "../server/fields.ts"
import { type PageQuery, pageOfAll } from "../server/listPages.ts"
import { answer, invalidFields } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"

const means: Record<LimitName, string> = {
  acceptsPerSecond: "Messages and events that each process accepts in a second.",
  bytesPerSecond: "Bytes of request bodies that each process accepts in a second.",
  waiting: "Messages that wait.",
  destinations: "Destinations of all kinds.",
  replays: "Replays that have work left.",
  feeds: "Feeds that are followed in each process, in place of the 100 that an org may follow."
}

const count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }))

type Counts<Name extends LimitName> = Record<Name, Schema.optionalKey<typeof count>>

export const limitsOf = <Name extends LimitName>(names: ReadonlyArray<Name>) =>
  Schema.Struct(
    Object.fromEntries(
      names.map((name) => [name, Schema.optionalKey(count.annotate({ description: means[name] }))])
    ) as Counts<Name>
  )

const Limits = limitsOf(limitNames).annotate({ identifier: "OrgLimits" })

const days = Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 36_500 }))

const keeps: Record<(typeof retentionNames)[number], string> = {
  endedDays: "Messages that ended well, and events without messages, are kept for so many days.",
  deadLetterDays: "Dead letters, and messages that were sent and never proven, are kept for so many days."
}

const Retention = Schema.Struct(
  Object.fromEntries(
    retentionNames.map((name) => [name, Schema.optionalKey(days.annotate({ description: keeps[name] }))])
  ) as Record<(typeof retentionNames)[number], Schema.optionalKey<typeof days>>
).annotate({ identifier: "OrgRetention" })

export const SetOrg = Schema.Struct({
  name: optional(text(200), "For people."),
  suspended: optional(
    text(500),
    "Why nothing is accepted from the org and nothing sent for it; left out: it is not suspended."
  ),
  limits: optional(Limits, "The most it may ask for and have. A limit that is not named is the installation's own."),
  retry: optional(
    Retry,
    "The retry policy of messages that bring none, to destinations that have none. Without it: their channels' own."
  ),
  retention: optional(
    Retention,
    "For how long what ended is kept. What is not named is kept as long as the installation keeps it."
  )
}).annotate({ identifier: "SetOrg", examples: [{ name: "Acme", limits: { acceptsPerSecond: 100 } }] })

export const Org = Schema.Struct({
  id: Schema.String.annotate({ description: "As keys and `X-Org-Id` name it." }),
  name: Text.annotate({ description: "For people." }),
  suspended: Text.annotate({ description: "Why it is suspended; null when it is not." }),
  limits: Limits,
  retention: Retention,
  retry: Schema.NullOr(Retry).annotate({ description: "Null: messages have the policies of their channels." }),
  destinations: Schema.Int.annotate({ description: "Destinations of all kinds that were not removed." }),
  waiting: Schema.Int.annotate({ description: "Messages that are QUEUED or SENDING, as the list has them." }),
  deadLetters: Schema.Int.annotate({ description: "Messages that are FAILED or DEAD_LETTER, as the list has them." }),
  replays: Schema.Int.annotate({ description: "Replays that have work left." }),
  updatedAt: Schema.NullOr(Moment).annotate({ description: "Null when nobody has set anything for it." })
}).annotate({ identifier: "Org" })

const byOrg = { params: { id: OrgId.annotateKey({ description: "The org, as keys and X-Org-Id name it." }) } }

export const orgsApi = HttpApiGroup.make("orgs")
  .add(
    HttpApiEndpoint.get("list", "/orgs", { query: paging, success: listOf(Org) }).annotateMerge(
      words("List all orgs that have settings, keys, destinations or messages, with counts.")
    ),
    HttpApiEndpoint.get("get", "/orgs/:id", { ...byOrg, success: Org }).annotateMerge(
      words("What is set for an org, and what it has. An org that nobody set anything for has no settings.")
    ),
    HttpApiEndpoint.put("set", "/orgs/:id", {
      ...byOrg,
      payload: SetOrg,
      success: Org,
      error: bodyErrors
    }).annotateMerge(
      words(
        "Set an org's name, limits, retry policy and retention, suspend it or let it go on. What is not named is unset."
      )
    )
  )
  .middleware(OperatorAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Orgs", "For the operator's key only."))

const decodeSet = decoderOf(SetOrg)

const list = Effect.fnUntraced(function* (query: PageQuery) {
  return yield* pageOfAll("orgs", query, (yield* Orgs).list, { of: Org, json: identity })
})

const get = (id: OrgId) => Effect.flatMap(Orgs, (orgs) => orgs.get(id))

const set = Effect.fnUntraced(function* (
  id: OrgId,
  request: HttpServerRequest.HttpServerRequest,
  daysMax: number | null
) {
  const { name, suspended, limits, retry, retention } = yield* bodyOf(request, decodeSet)
  const tooLong = Object.entries(retention ?? {}).filter(([, days]) => daysMax !== null && days > daysMax)
  if (tooLong.length > 0) {
    const reason = `must be ${daysMax} at most, as POSTHASTE_RETENTION_MAX_DAYS says`
    return yield* invalidFields(tooLong.map(([kept]) => ({ field: `retention.${kept}`, reason })))
  }
  const orgs = yield* Orgs
  yield* orgs.set(id, {
    ...{ name: name ?? null, suspended: suspended ?? null },
    ...{ limits: limits ?? {}, retry: retry ?? null, retention: retention ?? {} }
  })
  return yield* orgs.get(id)
})

/** `retentionDaysMax` bounds the days that an org may be given; null: no bound. */
export const layerWith = (retentionDaysMax: number | null) =>
  HttpApiBuilder.group(base.add(orgsApi), "orgs", (handlers) =>
    handlers
      .handle("list", ({ query }) => answer(list(query)))
      .handle("get", ({ params }) => answer(get(params.id)))
      .handleRaw("set", ({ params, request }) => answer(set(params.id, request, retentionDaysMax)))
  )
