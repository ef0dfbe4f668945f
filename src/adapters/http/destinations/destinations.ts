/**
 * Answers what is asked about destinations, for every channel alike. Secrets come in here; one that was made for its
 * owner leaves in the answer that made it, and otherwise by secrets.ts.
 */
import { Effect, type Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { retryPolicyOf } from "../../../application/accept/addressing.ts"
import {
  changeDestination,
  createDestination,
  readDestination
} from "../../../application/destinations/destinations.ts"
import { Retry } from "../../../application/destinations/fields.ts"
import { healthOf } from "../../../application/destinations/health.ts"
import { shownSettings } from "../../../application/destinations/hiddenTexts.ts"
import { objectionsToWishes } from "../../../application/events/catalogue.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import { type Destination, Destinations } from "../../../application/ports/Destinations.ts"
import { Orgs } from "../../../application/ports/Orgs.ts"
import { DestinationId, type OrgId } from "../../../domain/ids.ts"
import { admitDestination } from "../orgs/admit.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, created, idOf, judged, notFound, orNotFound, publicKeyTaken, unfit } from "../server/problem.ts"
import { bodyOf, decoderOf, readReason } from "../server/requestBody.ts"
import { destinationsApi, groupNameOf, publishedBy, shapesOf, stateOf } from "./destinationsApi.ts"

export const destinationIdOf = idOf(DestinationId)

type Request = HttpServerRequest.HttpServerRequest

/** Of what fields these are made is not known to the compiler. */
type Fields = Readonly<Record<string, unknown>>
type Decoder = Schema.ConstraintDecoder<Fields>

/** Whoever wishes for events wishes for types there are, where the org's catalogue is enforced. */
const inCatalogue = Effect.fnUntraced(function* (orgId: OrgId, settings: Readonly<Record<string, unknown>>) {
  const faults = yield* objectionsToWishes(orgId, settings["eventTypes"])
  if (faults.length > 0) yield* unfit(faults)
})

/** The routes of one channel's destinations. */
export const layerOf = (channel: AnyChannel) => {
  const { Create, Change, Shown } = shapesOf(channel)
  const decodeCreate = decoderOf(Create as unknown as Decoder)
  const decodeChange = decoderOf(Change as unknown as Decoder)
  const decodeRetry = decoderOf(Retry)

  const publicNames = publishedBy(channel.secrets).map(({ name }) => name)
  const shown = ({ settings, secretNames, published, ...rest }: Destination) => {
    const { alerting: _, channel: __, enabledAt: ___, ...destination } = rest
    return {
      ...shownSettings(channel, settings),
      ...destination,
      state: stateOf(destination),
      ...(channel.ownSecretsMax > 0 && { secretNames }),
      ...Object.fromEntries(publicNames.map((name) => [name, published[name] ?? null]))
    }
  }

  /** Settings and secrets of a decoded request, apart. */
  const halvesOf = (given: Readonly<Record<string, unknown>>) => {
    const { secrets, ...fields } = given
    const named = Object.entries(fields).filter(([name]) => name in channel.secrets)
    return {
      settings: Object.fromEntries(Object.entries(fields).filter(([name]) => !(name in channel.secrets))),
      secrets: { ...Object.fromEntries(named), ...(secrets as object) } as Readonly<Record<string, string>>
    }
  }

  const create = Effect.fnUntraced(function* (request: Request) {
    const orgId = yield* ActingOrg
    const given = halvesOf(yield* bodyOf(request, decodeCreate))
    yield* admitDestination(orgId)
    yield* inCatalogue(orgId, given.settings)
    const { destination, shownOnce } = yield* judged(
      yield* createDestination(channel, orgId, given.settings, given.secrets)
    )
    if (destination === "Taken") return yield* publicKeyTaken(channel)
    return created(`/${channel.path}/${destination.id}`, { ...shown(destination), ...shownOnce })
  })

  const list = Effect.fnUntraced(function* (query: PageQuery) {
    const { list } = yield* Destinations
    return yield* pageOf(channel.path, query, (orgId, page) => list(orgId, { channel: channel.name }, page), {
      of: Shown as unknown as Schema.Codec<Fields>,
      json: shown
    })
  })

  const get = Effect.fnUntraced(function* (id: string) {
    return yield* orNotFound(yield* readDestination(channel, yield* ActingOrg, yield* destinationIdOf(id)))
  })

  const update = Effect.fnUntraced(function* (
    id: string,
    settings: Readonly<Record<string, unknown>>,
    secrets: Readonly<Record<string, string | null>> = {}
  ) {
    const orgId = yield* ActingOrg
    return yield* judged(
      yield* orNotFound(yield* changeDestination(channel, orgId, yield* destinationIdOf(id), settings, secrets))
    )
  })

  const change = Effect.fnUntraced(function* (request: Request, id: string) {
    const given = halvesOf(yield* bodyOf(request, decodeChange))
    yield* inCatalogue(yield* ActingOrg, given.settings)
    return shown(yield* update(id, given.settings, given.secrets))
  })

  const remove = Effect.fnUntraced(function* (id: string) {
    const orgId = yield* ActingOrg
    if (!(yield* (yield* Destinations).remove(channel, orgId, yield* destinationIdOf(id)))) yield* notFound()
  })

  const setPaused = Effect.fnUntraced(function* (id: string, paused: boolean, reason: string | null = null) {
    const orgId = yield* ActingOrg
    const { setPaused } = yield* Destinations
    return shown(yield* orNotFound(yield* setPaused(channel, orgId, yield* destinationIdOf(id), paused, reason)))
  })

  const pause = Effect.fnUntraced(function* (request: Request, id: string) {
    return yield* setPaused(id, true, yield* readReason(request))
  })

  const enable = Effect.fnUntraced(function* (id: string) {
    const orgId = yield* ActingOrg
    const { setDisabled } = yield* Destinations
    return shown(yield* orNotFound(yield* setDisabled(channel, orgId, yield* destinationIdOf(id), null)))
  })

  const health = Effect.fnUntraced(function* (id: string) {
    const destination = yield* get(id)
    const { disabledReason } = destination
    const freshness = yield* (yield* Freshness).of("health")
    return { state: stateOf(destination), disabledReason, ...(yield* healthOf(destination.id)), ...freshness }
  })

  const retryOf = Effect.fnUntraced(function* ({ orgId, settings }: Destination) {
    const { retry: ofOrg } = yield* (yield* Orgs).settingsOf(orgId)
    return retryPolicyOf(channel, settings.retry, ofOrg)
  })

  const putRetry = Effect.fnUntraced(function* (request: Request, id: string) {
    const retry = yield* bodyOf(request, decodeRetry)
    return yield* retryOf(yield* update(id, { retry }))
  })

  const api = Api.add(destinationsApi(channel))
  return HttpApiBuilder.group(api, groupNameOf(channel) as "destinations", (handlers) =>
    handlers
      .handleRaw("create", ({ request }) => answer(create(request)))
      .handle("list", ({ query }) => answer(list(query)))
      .handle("get", ({ params }) => answer(Effect.map(get(params.id), shown)))
      .handleRaw("change", ({ request, params }) => answer(change(request, params.id)))
      .handle("remove", ({ params }) => answer(remove(params.id)))
      .handleRaw("pause", ({ request, params }) => answer(pause(request, params.id)))
      .handle("resume", ({ params }) => answer(setPaused(params.id, false)))
      .handle("enable", ({ params }) => answer(enable(params.id)))
      .handle("health", ({ params }) => answer(health(params.id)))
      .handle("getRetry", ({ params }) => answer(Effect.flatMap(get(params.id), retryOf)))
      .handleRaw("putRetry", ({ request, params }) => answer(putRetry(request, params.id)))
      .handle("removeRetry", ({ params }) => answer(Effect.asVoid(update(params.id, { retry: null }))))
  )
}
