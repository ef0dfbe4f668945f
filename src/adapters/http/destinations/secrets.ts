/** Rotates secrets and shows them to their owner, unless the channel publishes something of them. */
import { type DateTime, Effect, Layer, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { rotateSecret, rotatingSecretOf, showSecret } from "../../../application/destinations/secrets.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import { between } from "../../../application/ports/fields.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { idParam, Moment, optional } from "../server/fields.ts"
import { answer, judged, orNotFound, problemOf } from "../server/problem.ts"
import { decoded, decoderOf, limits, readOptionalJson } from "../server/requestBody.ts"
import { capital, destinationIdOf, groupNameOf } from "./destinations.ts"

const GRACE_DEFAULT_SECONDS = 86_400

const GRACE_MAX_SECONDS = 30 * 86_400

const rotationOf = ({ secrets, typeName }: AnyChannel, name: string) =>
  Schema.Struct({
    graceSeconds: optional(
      between(0, GRACE_MAX_SECONDS),
      `How long the secrets before it are good, ${GRACE_DEFAULT_SECONDS} when left out. 0 ends all of them at once.`
    ),
    [name]: optional(secrets[name]!.schema, "The new secret; made for you when left out.")
  }).annotate({ identifier: `Rotate${typeName}Secret`, examples: [{ graceSeconds: 3600 }] })

const secretsGroupOf = (channel: AnyChannel) => `${groupNameOf(channel).slice(0, -1)}Secrets`

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
  // The secret's holder can sign as Posthaste does.
  const read = HttpApiEndpoint.get("readSecret", `/${path}/:id/${name}`, { ...byId, success: Secret }).annotateMerge(
    about("endpoints:write", `The ${name} of the ${noun}. The audit tells who read it.`)
  )
  const rotate = HttpApiEndpoint.post("rotateSecret", `/${path}/:id/${name}/rotate`, {
    params: idParam,
    payload: rotationOf(channel, name),
    success: Secret,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(
    about(
      "endpoints:write",
      `Give the ${noun} a new ${name}. Until the grace ends every request carries a signature by each.`
    )
  )
  return HttpApiGroup.make(secretsGroupOf(channel) as "secrets")
    .add(read, rotate)
    .middleware(OrgAccess)
    .prefix("/api/v1")
    .annotateMerge(titled(`${capital(noun)} ${name}s`, `Read and rotate the ${name} of the ${noun}.`))
}

/** The compiler does not know the secret's name. */
type Decoder = Schema.ConstraintDecoder<{ readonly [field: string]: unknown }>

export const layerOf = (channel: AnyChannel) => {
  const name = rotatingSecretOf(channel)
  if (name === null) return Layer.empty
  const decode = decoderOf(rotationOf(channel, name) as unknown as Decoder)

  interface Current {
    readonly shown: Readonly<Record<string, string>>
    readonly previousUntil: DateTime.Utc | null
  }
  const answerOf = ({ shown, previousUntil }: Current) =>
    HttpServerResponse.jsonUnsafe({ ...shown, previousUntil }, { headers: { "cache-control": "no-store" } })

  const rotate = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
    const told = yield* decoded(decode, yield* readOptionalJson(request, limits.single))
    const orgId = yield* ActingOrg
    const given = (told[name] ?? null) as string | null
    const graceSeconds = (told["graceSeconds"] ?? GRACE_DEFAULT_SECONDS) as number
    const rotated = yield* rotateSecret(channel, orgId, yield* destinationIdOf(id), name, given, graceSeconds)
    return answerOf(yield* judged(yield* orNotFound(rotated)))
  })

  const read = Effect.fnUntraced(function* (id: string) {
    return answerOf(yield* orNotFound(yield* showSecret(channel, yield* ActingOrg, yield* destinationIdOf(id), name)))
  })

  const api = base.add(secretsApi(channel, name))
  return HttpApiBuilder.group(api, secretsGroupOf(channel) as "secrets", (handlers) =>
    handlers
      .handleRaw("readSecret", ({ params }) => answer(read(params.id)))
      .handleRaw("rotateSecret", ({ request, params }) => answer(rotate(request, params.id)))
  )
}
