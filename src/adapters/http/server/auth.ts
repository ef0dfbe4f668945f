/**
 * The caller of a request. A key of an org acts for that org as far as its scopes go; an operator's key acts for the
 * org in `X-Org-Id` and may do all. A request's org and actor (`operator`, `key:<id>`) come from here alone.
 */
import { randomUUID } from "node:crypto"
import { Clock, Context, DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { CommandedBy } from "../../../application/commandedBy.ts"
import { noteAccess } from "../../../application/keys/access.ts"
import { ApiKeys, type Holder } from "../../../application/ports/ApiKeys.ts"
import type { StoreUnavailable } from "../../../application/ports/errors.ts"
import type { Rates } from "../../../application/ports/Orgs.ts"
import { allows, type Scope } from "../../../application/ports/scopes.ts"
import { NOBODY } from "../../../domain/audit/entry.ts"
import { OrgId } from "../../../domain/ids.ts"
import { hashOf, isSameHash, isWellFormed, storedHash } from "./apiKey.ts"
import { addressOf, isIn, type Networks, networksOf } from "./callers.ts"
import { NeededScope, OfAllOrgs } from "./endpoints.ts"
import {
  forbidden,
  invalidRequest,
  lacking,
  type Problem,
  problemOf,
  refuse,
  tooMuch,
  unauthorized
} from "./problem.ts"
import { keyHashOf, Quotas } from "./quotas.ts"
import { makeRefusals } from "./refusals.ts"

export class ActingOrg extends Context.Service<ActingOrg, OrgId>()("posthaste/adapters/http/server/auth/ActingOrg") {}

export class Caller extends Context.Service<
  Caller,
  {
    /** Null for the operator. */
    readonly keyId: string | null
    readonly may: (scope: Scope) => boolean
    /** Null for the operator. */
    readonly limited: { readonly id: string; readonly limits: Rates } | null
    /** Null when unknown. */
    readonly address: string | null
  }
>()("posthaste/adapters/http/server/auth/Caller") {}

/** The key that manages the keys of its org; null: the operator, for all orgs. */
export class ManagingKey extends Context.Service<ManagingKey, Holder | null>()(
  "posthaste/adapters/http/server/auth/ManagingKey"
) {}

const security = {
  apiKey: HttpApiSecurity.annotate(
    HttpApiSecurity.bearer,
    OpenApi.Description,
    "An org's API key, or the operator's key together with X-Org-Id."
  )
}
const errors = [problemOf(400), problemOf(401), problemOf(403), problemOf(429), problemOf(500), problemOf(503)]

export class OrgAccess extends HttpApiMiddleware.Service<OrgAccess, { provides: ActingOrg | Caller }>()(
  "posthaste/adapters/http/server/auth/OrgAccess",
  { security, error: errors }
) {}

export class OperatorAccess extends HttpApiMiddleware.Service<OperatorAccess>()(
  "posthaste/adapters/http/server/auth/OperatorAccess",
  { security, error: errors }
) {}

/** For the operator and keys with the scope `admin`. */
export class KeyAccess extends HttpApiMiddleware.Service<KeyAccess, { provides: ManagingKey }>()(
  "posthaste/adapters/http/server/auth/KeyAccess",
  { security, error: errors }
) {}

const ORG_HEADER = "X-Org-Id"
const isOrgId = Schema.is(OrgId)

type Refusal = Problem | StoreUnavailable

/** They rotate while the process runs. */
export type OperatorKeys = () => ReadonlyArray<Redacted.Redacted>

const hashes = new WeakMap<ReadonlyArray<Redacted.Redacted>, ReadonlyArray<Buffer>>()

/** Takes the same time for every key. */
export const isOperator = (keys: OperatorKeys, hashed: Buffer): boolean => {
  const given = keys()
  const known = hashes.get(given) ?? given.map((key) => hashOf(Redacted.value(key)))
  hashes.set(given, known)
  return known.map((one) => isSameHash(hashed, one)).includes(true)
}

interface AuthOptions {
  readonly operatorKeys: OperatorKeys
  /** The operator's proxies, whose `X-Forwarded-For` is believed. */
  readonly trustedProxies?: Networks | null
}

const networksOfHolder = new WeakMap<Pick<Holder, "networks">, Networks | null>()

/** True when the key may be used from the address. A key with networks is refused an unknown address. */
export const comesFrom = (holder: Pick<Holder, "networks">, address: string | null): boolean => {
  if (holder.networks === null) return true
  const networks = networksOfHolder.get(holder) ?? networksOf(holder.networks)
  networksOfHolder.set(holder, networks)
  return networks !== null && address !== null && isIn(networks, address)
}

export const layer = ({ operatorKeys, trustedProxies = null }: AuthOptions) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const quotas = yield* Quotas
      const refusals = yield* makeRefusals((fact) => noteAccess(randomUUID(), fact))

      const holderOf = Effect.fnUntraced(function* (
        key: string,
        request: HttpServerRequest.HttpServerRequest
      ): Effect.fn.Return<Holder | null, Refusal> {
        const address = addressOf(request, trustedProxies)
        if (key === "") return yield* unauthorized("Send the header authorization: Bearer <API key>.")
        const hashed = keyHashOf(request.source, key)
        const now = yield* Clock.currentTimeMillis
        const stored = storedHash(hashed)
        if (isOperator(operatorKeys, hashed)) {
          quotas.goodKey(stored, null)
          return null
        }
        const wait = quotas.wrongKeyWait(address, stored)
        if (wait > 0) {
          refusals.note(null, "unknown", address)
          return yield* tooMuch(
            "Too many wrong keys came from here: only keys that were good lately are looked up.",
            wait
          )
        }
        const holder = isWellFormed(key) ? yield* keys.holderOf(stored) : null
        if (holder === null || holder.revoked) {
          quotas.wrongKey(address, stored)
          refusals.note(holder, holder === null ? "unknown" : "revoked", address)
          return yield* unauthorized(
            isWellFormed(key) ? "This key is not known, or was revoked." : "This is not an API key."
          )
        }
        if (holder.expiresAt !== null && DateTime.toEpochMillis(holder.expiresAt) <= now) {
          refusals.note(holder, "expired", address)
          return yield* unauthorized("This key has expired.")
        }
        if (!comesFrom(holder, address)) {
          refusals.note(holder, "network", address)
          return yield* forbidden("This key may not be used from this address.")
        }
        quotas.goodKey(stored, holder.orgId)
        yield* keys.used(holder.id)
        return holder
      })

      type Asked = Pick<HttpApiEndpoint.Top, "annotations">

      /** Fails when the key is not good or may not call the route. */
      const callerOf = Effect.fnUntraced(function* (credential: Redacted.Redacted, endpoint: Asked) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const address = addressOf(request, trustedProxies)
        const holder = yield* holderOf(Redacted.value(credential), request)
        const may = (scope: Scope) => holder === null || allows(holder.scopes, scope)
        const needed = Context.getOrElse(endpoint.annotations, NeededScope, (): Scope => "admin")
        if (!may(needed)) return yield* lacking(needed)
        return {
          holder,
          ofAll: Option.isSome(Context.getOption(endpoint.annotations, OfAllOrgs)),
          named: request.headers["x-org-id"],
          caller: { keyId: holder?.id ?? null, may, limited: holder, address }
        }
      })

      return Context.empty().pipe(
        Context.add(OrgAccess, {
          apiKey: (handler, { credential, endpoint }) =>
            Effect.matchEffect(
              Effect.flatMap(callerOf(credential, endpoint), ({ holder, ofAll, named, caller }) =>
                Effect.map(actingOrg(holder, named, ofAll), (orgId) => ({ orgId, caller, actor: actorOf(holder) }))
              ),
              {
                onFailure: refuse,
                onSuccess: ({ orgId, caller, actor }) =>
                  handler.pipe(
                    Effect.provideService(ActingOrg, orgId),
                    Effect.provideService(Caller, caller),
                    Effect.provideService(CommandedBy, actor)
                  )
              }
            )
        }),
        Context.add(KeyAccess, {
          apiKey: (handler, { credential, endpoint }) =>
            Effect.matchEffect(callerOf(credential, endpoint), {
              onFailure: refuse,
              onSuccess: ({ holder }) =>
                handler.pipe(
                  Effect.provideService(ManagingKey, holder),
                  Effect.provideService(CommandedBy, actorOf(holder))
                )
            })
        }),
        Context.add(OperatorAccess, {
          apiKey: (handler, { credential }) =>
            Effect.matchEffect(
              Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
                holderOf(Redacted.value(credential), request)
              ),
              {
                onFailure: refuse,
                onSuccess: (holder) =>
                  holder === null
                    ? Effect.provideService(handler, CommandedBy, actorOf(holder))
                    : refuse(forbidden("Only the operator's key may do this."))
              }
            )
        })
      )
    })
  )

const actorOf = (holder: Holder | null): string => (holder === null ? "operator" : `key:${holder.id}`)

/** Null: all orgs. */
export const oneOrAll = (orgId: OrgId): OrgId | null => (orgId === NOBODY ? null : orgId)

const actingOrg = (holder: Holder | null, named: string | undefined, ofAll: boolean): Effect.Effect<OrgId, Problem> => {
  if (holder === null && named === NOBODY && ofAll) return Effect.succeed(NOBODY)
  if (holder !== null) {
    return named === undefined || named === holder.orgId
      ? Effect.succeed(holder.orgId)
      : Effect.fail(
          forbidden("This key acts for another org than X-Org-Id names.", [
            { field: ORG_HEADER, reason: "must be left out or name the key's own org" }
          ])
        )
  }
  return named !== undefined && isOrgId(named)
    ? Effect.succeed(named)
    : Effect.fail(
        invalidRequest("The operator's key acts for the org that X-Org-Id names.", [
          {
            field: ORG_HEADER,
            reason: named === undefined ? "is required" : "must be 1 to 64 letters, digits, dots, dashes or underscores"
          }
        ])
      )
}
