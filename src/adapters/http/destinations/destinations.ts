/** The resource of destinations, for every channel alike. A secret leaves here only in the answer that made it. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { retryPolicyOf } from "../../../application/accept/addressing.ts"
import {
  changeDestination,
  createDestination,
  readDestination
} from "../../../application/destinations/destinations.ts"
import { healthOf } from "../../../application/destinations/health.ts"
import { shownSettings } from "../../../application/destinations/hiddenTexts.ts"
import { objectionsToWishes } from "../../../application/events/catalogue.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import { WAITING_MAX } from "../../../application/ports/Backlogs.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import { type Destination, Destinations } from "../../../application/ports/Destinations.ts"
import { Retry, type Setting } from "../../../application/ports/fields.ts"
import { Orgs } from "../../../application/ports/Orgs.ts"
import { circuitStatuses } from "../../../domain/circuit/machine.ts"
import { DestinationId, type OrgId } from "../../../domain/ids.ts"
import { CommandRequest } from "../../api/messageRequests.ts"
import { admitDestination } from "../orgs/admit.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { freshness, Id, idParam, listOf, Moment, optional, paging } from "../server/fields.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import {
  answer,
  created,
  idOf,
  judged,
  notFound,
  orNotFound,
  problemOf,
  publicKeyTaken,
  unfit
} from "../server/problem.ts"
import { bodyOf, decoderOf, readReason } from "../server/requestBody.ts"

export const states = ["ACTIVE", "PAUSED", "DISABLED"] as const

/** Disabled outweighs paused: resuming would change nothing. */
export const stateOf = ({
  disabledReason,
  paused
}: Pick<Destination, "disabledReason" | "paused">): (typeof states)[number] =>
  disabledReason !== null ? "DISABLED" : paused ? "PAUSED" : "ACTIVE"

type Fields = Record<string, Schema.Codec<unknown, unknown>>

const mapped = <A>(record: Readonly<Record<string, A>>, of: (value: A) => Schema.Top | null): Fields =>
  Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => {
      const field = of(value)
      return field === null ? [] : [[name, field as Schema.Codec<unknown, unknown>]]
    })
  )

const isRequired = (setting: Setting) => !("default" in setting)

const OwnSecrets = Schema.Record(Schema.String, Schema.String).annotate({
  description: "By name. Stored encrypted, never shown."
})

const OwnSecretsChange = Schema.Record(Schema.String, Schema.NullOr(Schema.String)).annotate({
  description: "By name. Those left out stay; null removes one."
})

const publishedBy = (secrets: AnyChannel["secrets"]) =>
  Object.values(secrets).flatMap(({ publishes }) => publishes ?? [])

const shapesOf = ({ typeName, settings, secrets, ownSecretsMax, example }: AnyChannel) => {
  const own = ownSecretsMax > 0
  const Create = Schema.Struct({
    ...mapped(settings as Record<string, Setting>, (setting) =>
      isRequired(setting) ? setting.schema : optional(setting.schema)
    ),
    ...mapped(secrets, ({ schema, generate, within }) =>
      within ? null : generate ? Schema.optionalKey(schema) : schema
    ),
    ...(own && { secrets: Schema.optionalKey(OwnSecrets) })
  }).annotate({ identifier: `Create${typeName}`, examples: [example] })
  /** A field left out stays as it is; null resets a setting and removes a secret of one's own. */
  const Change = Schema.Struct({
    ...mapped(settings as Record<string, Setting>, (setting) => {
      if (setting.publicKey !== undefined) return null
      return isRequired(setting) ? Schema.optionalKey(setting.schema) : optional(setting.schema)
    }),
    ...mapped(secrets, ({ schema, replaceable, within }) =>
      replaceable && !within ? Schema.optionalKey(schema) : null
    ),
    ...(own && { secrets: Schema.optionalKey(OwnSecretsChange) })
  }).annotate({ identifier: `Change${typeName}`, examples: [{ maxInFlight: 20 } as object] })
  const shown = {
    id: Id,
    orgId: Schema.String,
    ...mapped(settings as Record<string, Setting>, (setting) =>
      setting.default === null ? Schema.NullOr(setting.schema) : setting.schema
    ),
    ...(own && { secretNames: Schema.Array(Schema.String) }),
    ...Object.fromEntries(
      publishedBy(secrets).map(({ name, description }) => [
        name,
        Schema.NullOr(Schema.String).annotate({ description })
      ])
    ),
    paused: Schema.Boolean.annotate({ description: "Nothing is sent to it; what is accepted for it waits." }),
    state: Schema.Literals(states).annotate({
      description: "DISABLED: Posthaste sends nothing to it until it is enabled. PAUSED: paused by hand."
    }),
    disabledReason: Schema.NullOr(Schema.String),
    version: Schema.Int,
    createdAt: Moment,
    updatedAt: Moment
  }
  const Shown = Schema.Struct(shown).annotate({ identifier: typeName })
  const once = mapped(secrets, ({ generate, rotates, publishes }) => {
    if (!generate) return null
    const described = Schema.String.annotate({
      description: `${rotates ? "GET …/secret shows it again." : "Shown this once."}${publishes ? ` Absent when there is a ${publishes.name}.` : ""}`
    })
    return publishes ? Schema.optionalKey(described) : described
  })
  const New =
    Object.keys(once).length === 0
      ? Shown
      : Schema.Struct({ ...shown, ...once }).annotate({ identifier: `New${typeName}` })
  return { Create, Change, Shown, New }
}

const Summary = Schema.Struct({
  attempts: Schema.Int,
  succeeded: Schema.Int,
  failed: Schema.Int,
  successRate: Schema.NullOr(Schema.Finite).annotate({ description: "0 to 1; null without attempts." }),
  latencyMs: Schema.NullOr(Schema.Struct({ p50: Schema.Int, p95: Schema.Int, p99: Schema.Int })).annotate({
    description: "At most these; too high by 41 % at most. Null without attempts."
  })
}).annotate({ identifier: "HealthSummary" })

const Health = Schema.Struct({
  state: Schema.Literals(states),
  disabledReason: Schema.NullOr(Schema.String),
  circuit: Schema.Literals(circuitStatuses),
  failingSince: Schema.NullOr(Moment).annotate({ description: "Since then every attempt has failed." }),
  lastFailedAt: Schema.NullOr(Moment),
  lastSucceededAt: Schema.NullOr(Moment),
  waiting: Schema.Int.annotate({ description: `Messages that wait; ${WAITING_MAX} stands for more.` }),
  oldestDueAt: Schema.NullOr(Moment).annotate({
    description: "When the first of them is or was due; null when none waits."
  }),
  lastHour: Summary,
  lastDay: Summary,
  ...freshness
}).annotate({ identifier: "DestinationHealth" })

export const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1)

export const groupNameOf = ({ typeName }: AnyChannel) => `${typeName[0]!.toLowerCase()}${typeName.slice(1)}s`

export const destinationsApi = (channel: AnyChannel) => {
  const { article, noun, name } = channel
  const { Create, Change, Shown, New } = shapesOf(channel)
  const one = `${article} ${noun}`
  const path = `/${channel.path}` as const
  const isUnique = Object.values(channel.settings as Record<string, Setting>).some(({ publicKey }) => publicKey)
  const showsOnce = New !== Shown && !Object.values(channel.secrets).some(({ rotates }) => rotates)

  const create = HttpApiEndpoint.post("create", path, {
    payload: Create,
    success: New.pipe(HttpApiSchema.status(201)),
    error: [...(isUnique ? [problemOf(409)] : []), problemOf(422), ...bodyErrors]
  }).annotateMerge(
    about(
      "endpoints:write",
      `Add ${one}.${showsOnce ? " Its secret is shown in this answer only." : ""}${isUnique ? " 409 when there is one of its name." : ""}`
    )
  )
  const list = HttpApiEndpoint.get("list", path, { query: paging, success: listOf(Shown) }).annotateMerge(
    about("endpoints:read", `List the org's ${noun}s.`)
  )
  const get = HttpApiEndpoint.get("get", `${path}/:id`, { ...byId, success: Shown }).annotateMerge(
    about("endpoints:read", `One ${noun}.`)
  )
  const change = HttpApiEndpoint.patch("change", `${path}/:id`, {
    params: idParam,
    payload: Change,
    success: Shown,
    error: [problemOf(404), problemOf(422), ...bodyErrors]
  }).annotateMerge(
    about(
      "endpoints:write",
      `Change ${one}. Changes apply from the next attempt.${channel.placesOf ? " One that moves it to another place must bring its secrets again: 422 names those that are missing." : ""}`
    )
  )
  const remove = HttpApiEndpoint.delete("remove", `${path}/:id`, {
    ...byId,
    success: HttpApiSchema.NoContent
  }).annotateMerge(about("endpoints:write", `Remove ${one}, its secrets and its headers.`))
  const command = { ...byId, success: Shown }
  const pause = HttpApiEndpoint.post("pause", `${path}/:id/pause`, {
    params: idParam,
    payload: CommandRequest,
    success: Shown,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(about("endpoints:write", `Send nothing to ${one} until it is resumed. Its messages wait.`))
  const resume = HttpApiEndpoint.post("resume", `${path}/:id/resume`, command).annotateMerge(
    about("endpoints:write", `Send to ${one} again, beginning with what has waited.`)
  )
  const enable = HttpApiEndpoint.post("enable", `${path}/:id/enable`, command).annotateMerge(
    about("endpoints:write", `Send to ${one} again that was disabled, beginning with what has waited.`)
  )
  const health = HttpApiEndpoint.get("health", `${path}/:id/health`, { ...byId, success: Health }).annotateMerge(
    about(
      "endpoints:read",
      `How the ${noun} does: success and latency of the last hour and day, what waits, since when it fails.`
    )
  )
  const retryPath = `${path}/:id/retry-config` as const
  const getRetry = HttpApiEndpoint.get("getRetry", retryPath, { ...byId, success: Retry }).annotateMerge(
    about(
      "endpoints:read",
      `The retry policy that applies to the ${noun}: its own, its org's, or the default of ${name}.`
    )
  )
  const putRetry = HttpApiEndpoint.put("putRetry", retryPath, {
    params: idParam,
    payload: Retry,
    success: Retry,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(
    about("endpoints:write", `Give the ${noun} a retry policy of its own. It applies to messages accepted from now on.`)
  )
  const removeRetry = HttpApiEndpoint.delete("removeRetry", retryPath, {
    ...byId,
    success: HttpApiSchema.NoContent
  }).annotateMerge(about("endpoints:write", `Return the ${noun} to the policy of its org, or the default of ${name}.`))

  // To the compiler all these groups are one.
  return HttpApiGroup.make(groupNameOf(channel) as "destinations")
    .add(create, list, get, change, remove, pause, resume, enable, health, getRetry, putRetry, removeRetry)
    .middleware(OrgAccess)
    .prefix("/api/v1")
    .annotateMerge(titled(`${capital(noun)}s`, `${capital(noun)}s, their settings and state.`))
}

export const destinationIdOf = idOf(DestinationId)

type Request = HttpServerRequest.HttpServerRequest

/** The compiler does not know the fields of a channel. */
type Given = Readonly<Record<string, unknown>>

type Decoder = Schema.ConstraintDecoder<Given>

/** Refuses unknown event types where the org's catalogue is enforced. */
const inCatalogue = Effect.fnUntraced(function* (orgId: OrgId, settings: Readonly<Record<string, unknown>>) {
  const faults = yield* objectionsToWishes(orgId, settings["eventTypes"])
  if (faults.length > 0) yield* unfit(faults)
})

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
      of: Shown as unknown as Schema.Codec<Given>,
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

  const api = base.add(destinationsApi(channel))
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
