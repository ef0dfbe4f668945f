/** The resource of API keys. A key is shown once: in the answer that created it. */
import { DateTime, Effect, identity, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { ApiKeys, type KeyTerms } from "../../../application/ports/ApiKeys.ts"
import type { Fault } from "../../../application/ports/errors.ts"
import { text } from "../../../application/ports/fields.ts"
import { rateNames } from "../../../application/ports/Orgs.ts"
import { allows, type Scopes, scopes } from "../../../application/ports/scopes.ts"
import { isUuid, OrgId } from "../../../domain/ids.ts"
import { limitsOf } from "../orgs/orgs.ts"
import { generateKey, hashOf, prefixOf, storedHash } from "../server/apiKey.ts"
import { KeyAccess, ManagingKey } from "../server/auth.ts"
import { isWithin, networksOf } from "../server/callers.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { Id, listOf, Moment, maybe, optional, paging, Text, Time } from "../server/fields.ts"
import { type PageQuery, pageOfAll, partOf } from "../server/listPages.ts"
import { answer, forbidden, invalidFields, notFound } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"

const scope = Schema.Literals(scopes)

const network = text(64).check(
  Schema.makeFilter((given) => networksOf([given]) !== null || "must be a network such as 10.0.0.0/8, or an address")
)

const Limits = limitsOf(rateNames).annotate({ identifier: "ApiKeyLimits" })

const CreateKey = Schema.Struct({
  orgId: optional(OrgId, "Required of the operator; of others it is their own."),
  name: text(100).annotateKey({ description: "For people, such as the service that uses it." }),
  scopes: optional(
    Schema.Array(scope).check(Schema.isMinLength(1), Schema.isMaxLength(scopes.length)),
    "What it may do. Without scopes: all but admin."
  ),
  expiresAt: optional(Time, "When it ends to be good. Without it: never."),
  networks: optional(
    Schema.Array(network).check(Schema.isMinLength(1), Schema.isMaxLength(50)),
    "From where it may be used. Without it: from anywhere."
  ),
  limits: optional(Limits, "What it may ask for, beside the limits of its org. Without it: as much as its org.")
}).annotate({
  identifier: "CreateApiKey",
  examples: [{ orgId: OrgId.make("acme"), name: "checkout", scopes: ["messages:send", "messages:read"] }]
})

const fields = {
  id: Id,
  orgId: Schema.String,
  name: Schema.String,
  prefix: Text.annotate({ description: "The beginning of the key, to know it by." }),
  scopes: Schema.NullOr(Schema.Array(scope)),
  expiresAt: Schema.NullOr(Moment),
  networks: Schema.NullOr(Schema.Array(Schema.String)),
  limits: Limits,
  createdAt: Moment,
  lastUsedAt: Schema.NullOr(Moment).annotate({ description: "To the minute; null: not yet." })
}

export const Key = Schema.Struct(fields).annotate({ identifier: "ApiKey" })

const NewKey = Schema.Struct({
  ...fields,
  key: Schema.String.annotate({ description: "Shown this once; only its hash is stored." })
}).annotate({ identifier: "NewApiKey" })

export const apiKeysApi = HttpApiGroup.make("apiKeys")
  .add(
    HttpApiEndpoint.post("create", "/api-keys", {
      payload: CreateKey,
      success: NewKey.pipe(HttpApiSchema.status(201)),
      error: bodyErrors
    }).annotateMerge(
      about(
        "admin",
        "Make a key that acts for an org. A key that makes another can give it no more than it has itself."
      )
    ),
    HttpApiEndpoint.get("list", "/api-keys", {
      query: { orgId: maybe(OrgId, "Only those of this org."), ...paging },
      success: listOf(Key)
    }).annotateMerge(about("admin", "List the keys that were not revoked: of all orgs or of one, or of the own org.")),
    HttpApiEndpoint.delete("revoke", "/api-keys/:id", { ...byId, success: HttpApiSchema.NoContent }).annotateMerge(
      about("admin", "Revoke a key. It is refused everywhere within a second, and what it follows ends.")
    )
  )
  .middleware(KeyAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("API keys", "For the operator, and for keys with the scope admin."))

const decodeCreate = decoderOf(CreateKey)

/** A key of an org can name its own org only. */
const orgOf = Effect.fnUntraced(function* (named: OrgId | null) {
  const own = (yield* ManagingKey)?.orgId ?? null
  if (own !== null && named !== null && named !== own) {
    return yield* forbidden("This key manages the keys of its own org.", [
      { field: "orgId", reason: "must be its own" }
    ])
  }
  return own ?? named
})

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { orgId: named, name, scopes, expiresAt, networks, limits } = yield* bodyOf(request, decodeCreate)
  const orgId = yield* orgOf(named ?? null)
  const faults = [
    ...(orgId === null ? [{ field: "orgId", reason: "is required" }] : []),
    ...(expiresAt != null && DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
      ? [{ field: "expiresAt", reason: "must lie in the future" }]
      : [])
  ]
  if (orgId === null || faults.length > 0) return yield* invalidFields(faults)
  const key = generateKey()
  const terms = {
    name,
    scopes: scopes == null ? null : [...new Set(scopes)],
    expiresAt: expiresAt ?? null,
    networks: networks ?? null,
    limits: limits ?? {},
    prefix: prefixOf(key)
  }
  const manager = yield* ManagingKey
  const wider = manager === null ? [] : widerThan(manager, terms)
  if (wider.length > 0) return yield* forbidden("A key can't make one that may more than itself.", wider)
  const stored = yield* (yield* ApiKeys).create(orgId, terms, storedHash(hashOf(key)))
  return HttpServerResponse.jsonUnsafe({ ...stored, key }, { status: 201 })
})

const list = Effect.fnUntraced(function* ({
  orgId: named,
  ...query
}: PageQuery & { readonly orgId?: OrgId | undefined }) {
  const orgId = yield* orgOf(named ?? null)
  const keys = yield* ApiKeys
  const page = (part: Parameters<typeof partOf>[1]) => Effect.map(keys.list(orgId), (all) => partOf(all, part))
  return yield* pageOfAll("api-keys", query, page, { of: Key, json: identity })
})

const revoke = Effect.fnUntraced(function* (id: string) {
  const own = (yield* ManagingKey)?.orgId ?? null
  if (!isUuid(id) || !(yield* (yield* ApiKeys).revoke(id, own))) yield* notFound()
})

export const layer = HttpApiBuilder.group(base.add(apiKeysApi), "apiKeys", (handlers) =>
  handlers
    .handleRaw("create", ({ request }) => answer(create(request)))
    .handle("list", ({ query }) => answer(list(query)))
    .handle("revoke", ({ params }) => answer(revoke(params.id)))
)

type Bounds = Pick<KeyTerms, "scopes" | "expiresAt" | "networks" | "limits">

/**
 * The fields in which `asked` is wider than `own`. A key hands out no more than it has: else whoever finds a narrow `admin`
 * key makes a wide one of it. A request that names no bound asks for all there is.
 */
export const widerThan = (own: Bounds, asked: Bounds): ReadonlyArray<Fault> => [
  ...givenBy(asked.scopes)
    .filter((scope) => !allows(own.scopes, scope))
    .map((scope) => ({ field: "scopes", reason: `must not hold ${scope}, which the key that asks lacks` })),
  ...laterThan(own, asked),
  ...outsideOf(own, asked),
  ...rateNames.flatMap((limit) => {
    const [most, wanted] = [own.limits[limit], asked.limits[limit]]
    return most === undefined || (wanted !== undefined && wanted <= most)
      ? []
      : [{ field: `limits.${limit}`, reason: `must be ${most} at most, as of the key that asks` }]
  })
]

const givenBy = (given: Scopes) => scopes.filter((scope) => allows(given, scope))

const laterThan = (own: Bounds, asked: Bounds): ReadonlyArray<Fault> => {
  if (own.expiresAt === null) return []
  if (asked.expiresAt !== null && DateTime.isLessThanOrEqualTo(asked.expiresAt, own.expiresAt)) return []
  const reason = `must be ${DateTime.formatIso(own.expiresAt)} at the latest, when the key that asks expires`
  return [{ field: "expiresAt", reason }]
}

const outsideOf = (own: Bounds, asked: Bounds): ReadonlyArray<Fault> => {
  const within = own.networks
  if (within === null) return []
  const reason = `must lie in the networks of the key that asks: ${within.join(", ")}`
  if (asked.networks === null) return [{ field: "networks", reason }]
  return asked.networks.flatMap((one, n) => (isWithin(one, within) ? [] : [{ field: `networks[${n}]`, reason }]))
}
