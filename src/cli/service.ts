/**
 * The HTTP API for the command line. It finds address and keys in flags, the environment, or the data directory of a
 * start without settings.
 */
import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { Effect, Option, Redacted, Schema, Stream } from "effect"
import { Flag } from "effect/cli"
import { type CallSettings, callSettings } from "../setup/config.ts"
import { apiUrl, dataFile } from "../setup/dataFiles.ts"
import { firstOrg } from "../setup/sample.ts"
import { distance, Failed, failed, note } from "./terminal.ts"
import { timeOf } from "./times.ts"

const url = Flag.String("url").pipe(
  Flag.withDescription(
    "The service's address; else POSTHASTE_URL, else the last one of the data directory, else http://127.0.0.1:8080"
  ),
  Flag.withDefault("")
)
const org = Flag.String("org").pipe(
  Flag.withDescription("Act for this org with the operator's key; else POSTHASTE_ORG"),
  Flag.withDefault("")
)
export const optionalText = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)

export const timeFlag = (name: string, description: string, direction: "ago" | "ahead" = "ago") =>
  optionalText(name, `${description}, such as 15:02, yesterday 15:02, 2h or 2026-11-18T12:00:00Z`).pipe(
    Flag.map(Option.map((text) => timeOf(text, new Date(), direction)))
  )

export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const json = switchFlag("json", "Print JSON")

/** The key comes by POSTHASTE_API_KEY or POSTHASTE_OPERATOR_KEY: a flag would show in lists of processes. */
export const serviceFlags = { url, org, json }
export const operatorFlags = { url, json }

type Query = Readonly<Record<string, string | undefined>>

export interface Aged {
  readonly asOf?: string
  readonly behindSeconds?: number
}

export interface List<A> extends Aged {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

export interface Trouble {
  readonly reason: string
  readonly says: string
  readonly since: string | null
  readonly transaction?: {
    readonly kind: string
    readonly pid: number | null
    readonly name: string
    readonly database: string | null
  } | null
}

export const troubleLine = ({ reason, says, since, transaction = null }: Trouble, now: number): string => {
  const whose =
    transaction === null
      ? []
      : [`${transaction.kind} ${transaction.name}${transaction.pid === null ? "" : ` (process ${transaction.pid})`}`]
  const told = [...(since === null ? [] : [`since ${distance(now - Date.parse(since))}`]), ...whose]
  return `${reason}: ${says}${told.length === 0 ? "" : ` (${told.join(", ")})`}`
}

export const noteTroubles = (troubles: ReadonlyArray<Trouble>) =>
  Effect.forEach(troubles, (trouble) => note(troubleLine(trouble, Date.now())), { discard: true })

const LATE_FROM_SECONDS = 5

/** Null while an answer is current. */
export const lateness = ({ asOf, behindSeconds = 0 }: Aged): string | null =>
  behindSeconds < LATE_FROM_SECONDS
    ? null
    : `this is ${distance(behindSeconds * 1000)} behind: it holds what was stored until ${asOf}`

export const noteLateness = (answer: Aged) => {
  const late = lateness(answer)
  return late === null ? Effect.void : note(late)
}

export interface Answer {
  readonly status: number
  readonly text: string
}

export interface Service {
  readonly url: string
  readonly call: (
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body?: string,
    headers?: Readonly<Record<string, string>>
  ) => Effect.Effect<Answer, Failed>
  readonly get: <A>(path: string, query?: Query) => Effect.Effect<A, Failed>
  readonly post: <A>(path: string, body: unknown) => Effect.Effect<A, Failed>
  /** Reads a list page by page as items are taken; `limit`: the size of a page. */
  readonly items: <A>(path: string, query: Query & { readonly limit: string }) => Stream.Stream<A, Failed>
  /** Streams an answer without end. Fails with `Interrupted` when it is cut off. */
  readonly follow: (
    path: string,
    headers: Readonly<Record<string, string>>
  ) => Stream.Stream<string, Failed | Interrupted>
}

/** The service did not answer: trying again may help. */
export class Interrupted extends Schema.TaggedError<Interrupted>()("Interrupted", { message: Schema.String }) {}

type Headers = Readonly<Record<string, string>>

/** Calls with an org's key, or the operator's for the named org. */
export const orgService = Effect.fnUntraced(function* (flags: { readonly url: string; readonly org: string }) {
  const settings = yield* callSettings
  const orgId = flags.org === "" ? settings.org : flags.org
  const orgKey = settings.apiKey
  if (orgKey !== null) {
    return yield* serviceAt(flags.url, settings, {
      ...bearer(orgKey),
      ...(orgId === null ? {} : { "x-org-id": orgId })
    })
  }
  if (settings.operatorKey !== null) {
    if (orgId === null) return yield* failed("the operator's key acts for an org: name it with --org or POSTHASTE_ORG")
    return yield* serviceAt(flags.url, settings, { ...bearer(settings.operatorKey), "x-org-id": orgId })
  }
  const keptOrgKey = orgId === null || orgId === firstOrg ? yield* keptKey(settings, "default-org-key") : null
  if (keptOrgKey !== null) return yield* serviceAt(flags.url, settings, bearer(keptOrgKey))
  const keptOperatorKey = yield* keptKey(settings, "operator-key")
  if (keptOperatorKey === null) return yield* noKey(settings, "POSTHASTE_API_KEY, or POSTHASTE_OPERATOR_KEY and --org")
  return yield* serviceAt(flags.url, settings, { ...bearer(keptOperatorKey), "x-org-id": orgId ?? firstOrg })
})

export const operatorService = Effect.fnUntraced(function* (flags: { readonly url: string }) {
  const settings = yield* callSettings
  const key = settings.operatorKey ?? (yield* keptKey(settings, "operator-key"))
  return yield* key === null ? noKey(settings, "POSTHASTE_OPERATOR_KEY") : serviceAt(flags.url, settings, bearer(key))
})

const noKey = ({ dataDir }: CallSettings, wanted: string) =>
  failed(
    existsSync(dataDir)
      ? `there is no key in ${resolve(dataDir)}: set ${wanted}`
      : `there is no data directory ${resolve(dataDir)}: go to where npm start ran or set POSTHASTE_DATA_DIR, or set ${wanted}`
  )

const keptKey = ({ dataDir }: CallSettings, name: string) =>
  dataFile(dataDir, name).read.pipe(
    Effect.map((key) => (key === null ? null : Redacted.make(key))),
    Effect.catch((error) => failed(error.message))
  )

const bearer = (key: Redacted.Redacted): Headers => ({ authorization: `Bearer ${Redacted.value(key)}` })

const serviceAt = (flag: string, settings: CallSettings, auth: Headers): Effect.Effect<Service, Failed> =>
  flag !== "" || settings.url !== null
    ? Effect.succeed(serviceBehind(flag === "" ? settings.url! : flag, auth))
    : apiUrl(settings.dataDir).read.pipe(
        Effect.catch((error) => failed(error.message)),
        Effect.map((known) => serviceBehind(known ?? URL_DEFAULT, auth))
      )

const URL_DEFAULT = "http://127.0.0.1:8080"

const serviceBehind = (url: string, auth: Headers): Service => {
  const base = url.replace(/\/+$/, "")
  const request = (method: string, path: string, body: string | undefined, headers: Headers, signal: AbortSignal) =>
    fetch(`${base}/api/v1${path}`, {
      method,
      signal,
      headers: { ...auth, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body })
    })
  const unreachable = (cause: unknown) =>
    isDistrust(cause)
      ? `the certificate of ${base} is not trusted (${reasonOf(cause)}): name the file of its authority in NODE_EXTRA_CA_CERTS`
      : `no answer from ${base} (${reasonOf(cause)}): does Posthaste run there? --url or POSTHASTE_URL says where it does`

  const call: Service["call"] = Effect.fnUntraced(function* (method, path, body, headers = {}) {
    const answer = yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await request(method, path, body, headers, signal)
        return { status: response.status, text: await response.text() }
      },
      catch: (cause) => new Failed({ message: unreachable(cause) })
    })
    if (answer.status >= 400) return yield* failed(problemIn(answer))
    return answer
  })

  const parsed = <A>(answer: Answer): Effect.Effect<A, Failed> =>
    Effect.try({
      try: () => JSON.parse(answer.text) as A,
      catch: () => new Failed({ message: `${base} does not answer as Posthaste does` })
    })

  const get = <A>(path: string, query: Query = {}) => {
    const given = Object.entries(query).filter((field): field is [string, string] => field[1] !== undefined)
    const search = new URLSearchParams(given).toString()
    return Effect.flatMap(call("GET", search === "" ? path : `${path}?${search}`), parsed<A>)
  }

  /** Not every key may read the stats. */
  const noteAge = (page: Aged) =>
    lateness(page) === null
      ? Effect.void
      : Effect.andThen(
          noteLateness(page),
          Effect.ignore(
            Effect.flatMap(get<{ readonly troubles: ReadonlyArray<Trouble> }>("/outbound/stats"), ({ troubles }) =>
              noteTroubles(troubles)
            )
          )
        )

  return {
    url: base,
    call,
    get,
    items: <A>(path: string, query: Query) =>
      Stream.paginate(undefined as string | undefined, (cursor) =>
        get<List<A>>(path, { ...query, cursor }).pipe(
          Effect.tap((page) => (cursor === undefined ? noteAge(page) : Effect.void)),
          Effect.map(({ items, nextCursor }) => [items, Option.fromNullOr(nextCursor)])
        )
      ),
    post: <A>(path: string, body: unknown) => Effect.flatMap(call("POST", path, JSON.stringify(body)), parsed<A>),
    follow: (path, headers) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const controller = yield* Effect.acquireRelease(
            Effect.sync(() => new AbortController()),
            (controller) => Effect.sync(() => controller.abort())
          )
          const cut = (cause: unknown) => new Interrupted({ message: unreachable(cause) })
          const response = yield* Effect.tryPromise({
            try: () => request("GET", path, undefined, headers, controller.signal),
            catch: cut
          })
          if (response.status >= 500) return yield* new Interrupted({ message: `${base} answered ${response.status}` })
          if (!response.ok || response.body === null) {
            const text = yield* Effect.promise(() => response.text())
            return yield* failed(problemIn({ status: response.status, text }))
          }
          const body = response.body.pipeThrough(new TextDecoderStream())
          return Stream.fromReadableStream({ evaluate: () => body, onError: cut })
        })
      )
  }
}

interface Problem {
  readonly title?: string
  readonly detail?: string
  readonly errors?: ReadonlyArray<{ readonly field: string; readonly reason: string }>
}

const problemIn = ({ status, text }: Answer): string => {
  let problem: Problem = {}
  try {
    problem = JSON.parse(text) as Problem
  } catch {}
  const { title, detail, errors = [] } = problem
  if (title === undefined) return `the service answered ${status}`
  const fields = errors.map(({ field, reason }) => `${field} ${reason}`).join("; ")
  // A malformed request's detail repeats its fields.
  return fields === "" || detail === `${fields}.`
    ? `${title} (${status}): ${detail}`
    : `${title} (${status}): ${detail} ${fields}`
}

/** True for a certificate of an unknown authority. */
const isDistrust = (cause: unknown): boolean =>
  cause instanceof Error &&
  (/^(?:UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT\w*)|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT\w*)$/.test(
    "code" in cause ? String(cause.code) : ""
  ) ||
    isDistrust(cause.cause))

const reasonOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const inner = cause.cause
  if (inner instanceof AggregateError && inner.errors.length > 0) return reasonOf(inner.errors[0])
  return inner instanceof Error ? inner.message : cause.message
}
