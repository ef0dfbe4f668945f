/** Rotates secrets and shows them to their owner. Secrets leave here in the open, unless something is published of them. */
import { type DateTime, Effect, Layer, type Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { rotateSecret, rotatingSecretOf, showSecret } from "../../../application/destinations/secrets.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { answer, judged, orNotFound } from "../server/problem.ts"
import { decoded, decoderOf, limits, readOptionalJson } from "../server/requestBody.ts"
import { destinationIdOf } from "./destinations.ts"
import { GRACE_DEFAULT_SECONDS, rotationOf, secretsApi, secretsGroupOf } from "./secretsApi.ts"

/** What a secret is called is not known to the compiler. */
type Decoder = Schema.ConstraintDecoder<{ readonly [field: string]: unknown }>

/** The routes of the secret of one channel's destinations, where it has one that rotates. */
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

  const api = Api.add(secretsApi(channel, name))
  return HttpApiBuilder.group(api, secretsGroupOf(channel) as "secrets", (handlers) =>
    handlers
      .handleRaw("readSecret", ({ params }) => answer(read(params.id)))
      .handleRaw("rotateSecret", ({ request, params }) => answer(rotate(request, params.id)))
  )
}
