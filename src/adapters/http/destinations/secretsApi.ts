/** What can be asked about the secret of a destination, where the record of its channel says that it can be rotated. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { between } from "../../../application/destinations/fields.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { idParam, Moment, optional } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"
import { capital, groupNameOf } from "./destinationsApi.ts"

export const GRACE_DEFAULT_SECONDS = 86_400
const GRACE_MAX_SECONDS = 30 * 86_400

/** `schema` is that of the secret. */
export const rotationOf = ({ secrets, typeName }: AnyChannel, name: string) =>
  Schema.Struct({
    graceSeconds: optional(between(0, GRACE_MAX_SECONDS)).annotateKey({
      description: `How long the secrets before it are good, ${GRACE_DEFAULT_SECONDS} when left out. 0 ends all of them at once.`
    }),
    [name]: optional(secrets[name]!.schema)
  }).annotate({ identifier: `Rotate${typeName}Secret` })

export const secretsGroupOf = (channel: AnyChannel) => `${groupNameOf(channel).slice(0, -1)}Secrets`

export const secretsApi = (channel: AnyChannel, name: string) => {
  const { noun, path, typeName } = channel
  const { publishes } = channel.secrets[name]!
  const Secret = Schema.Struct({
    [name]: publishes ? Schema.optionalKey(Schema.String) : Schema.String,
    ...(publishes && {
      [publishes.name]: Schema.optionalKey(Schema.String).annotate({ description: `In place of the ${name}.` })
    }),
    previousUntil: Schema.NullOr(Moment).annotate({
      description: "Until then the secrets before it are good too; null when none is."
    })
  }).annotate({ identifier: `${typeName}Secret` })
  const read = HttpApiEndpoint.get("readSecret", `/${path}/:id/${name}`, { ...byId, success: Secret }).annotateMerge(
    about(`The ${name} of the ${noun}. The audit tells who read it.`)
  )
  const rotate = HttpApiEndpoint.post("rotateSecret", `/${path}/:id/${name}/rotate`, {
    params: idParam,
    payload: rotationOf(channel, name),
    success: Secret,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(
    about(`Give the ${noun} a new ${name}. Until the grace ends every request carries a signature by each.`)
  )
  return HttpApiGroup.make(secretsGroupOf(channel) as "secrets")
    .add(read, rotate)
    .middleware(OrgAccess)
    .prefix("/api/v1")
    .annotateMerge(OpenApi.annotations({ title: `${capital(noun)} ${name}s` }))
}
