/**
 * What can be asked about the destinations of each channel, and what is answered: the shapes, as data, made from the
 * record of the channel. What a channel's settings are is known when the process starts and not to the compiler: so
 * these groups have one type, and the handlers decode by the schemas made here.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Retry, type Setting } from "../../../application/destinations/fields.ts"
import { WAITING_MAX } from "../../../application/ports/Backlogs.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import type { Destination } from "../../../application/ports/Destinations.ts"
import { circuitStatuses } from "../../../domain/circuit/machine.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { freshness, idParam, listOf, Moment, optional, paging, Reason } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

export const states = ["ACTIVE", "PAUSED", "DISABLED"] as const

/** Disabled counts for more than paused: resuming it would change nothing. */
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

/** What the secrets of a channel publish. */
export const publishedBy = (secrets: AnyChannel["secrets"]) =>
  Object.values(secrets).flatMap(({ publishes }) => publishes ?? [])

/** The shapes of one channel's destinations. */
export const shapesOf = ({ typeName, settings, secrets, ownSecretsMax }: AnyChannel) => {
  const own = ownSecretsMax > 0
  const Create = Schema.Struct({
    ...mapped(settings as Record<string, Setting>, (setting) =>
      isRequired(setting) ? setting.schema : optional(setting.schema)
    ),
    ...mapped(secrets, ({ schema, generate, within }) =>
      within ? null : generate ? Schema.optionalKey(schema) : schema
    ),
    ...(own && { secrets: Schema.optionalKey(OwnSecrets) })
  }).annotate({ identifier: `Create${typeName}` })
  /** What is left out stays as it is; null puts a setting back to its default, and removes a secret of one's own. */
  const Change = Schema.Struct({
    ...mapped(settings as Record<string, Setting>, (setting) => {
      if (setting.publicKey !== undefined) return null
      return isRequired(setting) ? Schema.optionalKey(setting.schema) : optional(setting.schema)
    }),
    ...mapped(secrets, ({ schema, replaceable, within }) =>
      replaceable && !within ? Schema.optionalKey(schema) : null
    ),
    ...(own && { secrets: Schema.optionalKey(OwnSecretsChange) })
  }).annotate({ identifier: `Change${typeName}` })
  const shown = {
    id: Schema.String,
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

export const Summary = Schema.Struct({
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
    error: [...(isUnique ? [problemOf(409)] : []), ...bodyErrors]
  }).annotateMerge(
    about(
      `Add ${one}.${showsOnce ? " Its secret is shown in this answer only." : ""}${isUnique ? " 409 when there is one of its name." : ""}`
    )
  )
  const list = HttpApiEndpoint.get("list", path, { query: paging, success: listOf(Shown) }).annotateMerge(
    about(`List the org's ${noun}s.`)
  )
  const get = HttpApiEndpoint.get("get", `${path}/:id`, { ...byId, success: Shown }).annotateMerge(
    about(`One ${noun}.`)
  )
  const change = HttpApiEndpoint.patch("change", `${path}/:id`, {
    params: idParam,
    payload: Change,
    success: Shown,
    error: [problemOf(404), problemOf(422), ...bodyErrors]
  }).annotateMerge(
    about(
      `Change ${one}. Changes apply from the next attempt.${channel.placesOf ? " One that moves it to another place must bring its secrets again: 422 names those that are missing." : ""}`
    )
  )
  const remove = HttpApiEndpoint.delete("remove", `${path}/:id`, {
    ...byId,
    success: HttpApiSchema.NoContent
  }).annotateMerge(about(`Remove ${one}, its secrets and its headers.`))
  const command = { ...byId, success: Shown }
  const pause = HttpApiEndpoint.post("pause", `${path}/:id/pause`, {
    params: idParam,
    payload: Reason.annotate({ identifier: "PauseCommand" }),
    success: Shown,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(about(`Send nothing to ${one} until it is resumed. Its messages wait.`))
  const resume = HttpApiEndpoint.post("resume", `${path}/:id/resume`, command).annotateMerge(
    about(`Send to ${one} again, beginning with what has waited.`)
  )
  const enable = HttpApiEndpoint.post("enable", `${path}/:id/enable`, command).annotateMerge(
    about(`Send to ${one} again that was disabled, beginning with what has waited.`)
  )
  const health = HttpApiEndpoint.get("health", `${path}/:id/health`, { ...byId, success: Health }).annotateMerge(
    about(`How the ${noun} does: success and latency of the last hour and day, what waits, since when it fails.`)
  )
  const retryPath = `${path}/:id/retry-config` as const
  const getRetry = HttpApiEndpoint.get("getRetry", retryPath, { ...byId, success: Retry }).annotateMerge(
    about(`The retry policy that applies to the ${noun}: its own, its org's, or the default of ${name}.`)
  )
  const putRetry = HttpApiEndpoint.put("putRetry", retryPath, {
    params: idParam,
    payload: Retry,
    success: Retry,
    error: [problemOf(404), ...bodyErrors]
  }).annotateMerge(about(`Give the ${noun} a retry policy of its own. It applies to messages accepted from now on.`))
  const removeRetry = HttpApiEndpoint.delete("removeRetry", retryPath, {
    ...byId,
    success: HttpApiSchema.NoContent
  }).annotateMerge(about(`Return the ${noun} to the policy of its org, or the default of ${name}.`))

  // The name is known when the process starts; to the compiler all these groups are one.
  return HttpApiGroup.make(groupNameOf(channel) as "destinations")
    .add(create, list, get, change, remove, pause, resume, enable, health, getRetry, putRetry, removeRetry)
    .middleware(OrgAccess)
    .prefix("/api/v1")
    .annotateMerge(OpenApi.annotations({ title: `${capital(noun)}s` }))
}
