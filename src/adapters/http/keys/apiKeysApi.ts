/** The endpoints of API keys as data: their requests and answers, for the operator. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { OrgId } from "../../../domain/ids.ts"
import { OperatorAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { listOf, Moment } from "../server/fields.ts"

export const CreateKey = Schema.Struct({ orgId: OrgId, name: text(100) }).annotate({ identifier: "CreateApiKey" })

const fields = { id: Schema.String, orgId: Schema.String, name: Schema.String, createdAt: Moment }
const Key = Schema.Struct(fields).annotate({ identifier: "ApiKey" })
const NewKey = Schema.Struct({
  ...fields,
  key: Schema.String.annotate({ description: "Shown this once; only its hash is stored." })
}).annotate({ identifier: "NewApiKey" })

const create = HttpApiEndpoint.post("create", "/api-keys", {
  payload: CreateKey,
  success: NewKey.pipe(HttpApiSchema.status(201)),
  error: bodyErrors
}).annotateMerge(about("Make a key that acts for an org."))

const list = HttpApiEndpoint.get("list", "/api-keys", {
  query: { orgId: Schema.optionalKey(OrgId) },
  success: listOf(Key)
}).annotateMerge(about("List the living keys, of all orgs or of one."))

const revoke = HttpApiEndpoint.delete("revoke", "/api-keys/:id", {
  ...byId,
  success: HttpApiSchema.NoContent
}).annotateMerge(about("Revoke a key. It is refused everywhere within a second."))

export const apiKeysApi = HttpApiGroup.make("apiKeys")
  .add(create, list, revoke)
  .middleware(OperatorAccess)
  .annotateMerge(OpenApi.annotations({ title: "API keys", description: "For the operator's key only." }))
