/** The endpoints of API keys as data: their requests and answers, for the operator and for an org's own `admin` keys. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { scopes } from "../../../application/keys/scopes.ts"
import { rateNames } from "../../../application/ports/Orgs.ts"
import { OrgId } from "../../../domain/ids.ts"
import { limitsOf } from "../orgs/orgsApi.ts"
import { KeyAccess } from "../server/auth.ts"
import { networksOf } from "../server/callers.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { listOf, Moment, optional, paging, Text, Time } from "../server/fields.ts"

const scope = Schema.Literals(scopes)
const network = text(64).check(
  Schema.makeFilter((given) => networksOf([given]) !== null || "must be a network such as 10.0.0.0/8, or an address")
)

const Limits = limitsOf(rateNames).annotate({ identifier: "ApiKeyLimits" })

export const CreateKey = Schema.Struct({
  orgId: optional(OrgId).annotateKey({ description: "Required of the operator; of others it is their own." }),
  name: text(100),
  scopes: optional(Schema.Array(scope).check(Schema.isMinLength(1), Schema.isMaxLength(scopes.length))).annotateKey({
    description: "What it may do. Without scopes: all but admin."
  }),
  expiresAt: optional(Time).annotateKey({ description: "When it ends to be good. Without it: never." }),
  networks: optional(Schema.Array(network).check(Schema.isMinLength(1), Schema.isMaxLength(50))).annotateKey({
    description: "From where it may be used. Without it: from anywhere."
  }),
  limits: optional(Limits).annotateKey({
    description: "What it may ask for, beside the limits of its org. Without it: as much as its org."
  })
}).annotate({ identifier: "CreateApiKey" })

const fields = {
  id: Schema.String,
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

const create = HttpApiEndpoint.post("create", "/api-keys", {
  payload: CreateKey,
  success: NewKey.pipe(HttpApiSchema.status(201)),
  error: bodyErrors
}).annotateMerge(
  about("Make a key that acts for an org. A key that makes another can give it no more than it has itself.")
)

const list = HttpApiEndpoint.get("list", "/api-keys", {
  query: { orgId: Schema.optionalKey(OrgId), ...paging },
  success: listOf(Key)
}).annotateMerge(about("List the keys that were not revoked: of all orgs or of one, or of the own org."))

const revoke = HttpApiEndpoint.delete("revoke", "/api-keys/:id", {
  ...byId,
  success: HttpApiSchema.NoContent
}).annotateMerge(about("Revoke a key. It is refused everywhere within a second, and what it follows ends."))

export const apiKeysApi = HttpApiGroup.make("apiKeys")
  .add(create, list, revoke)
  .middleware(KeyAccess)
  .annotateMerge(
    OpenApi.annotations({ title: "API keys", description: "For the operator, and for keys with the scope admin." })
  )
