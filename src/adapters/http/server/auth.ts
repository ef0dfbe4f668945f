/**
 * The caller of a request. An org's key acts for its org and no other; the operator's key acts for the org named in
 * `X-Org-Id`, and it alone may manage keys. The org of a request and its actor (`operator` or `key:<id>`) come from
 * here and from nowhere else.
 */
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { CommandedBy } from "../../../application/commandedBy.ts"
import type { StoreUnavailable } from "../../../application/errors.ts"
import { ApiKeys, type Holder } from "../../../application/ports/ApiKeys.ts"
import { OrgId } from "../../../domain/ids.ts"
import { hashOf, isSameHash, isWellFormed, storedHash } from "../keys/apiKey.ts"
import { forbidden, invalidRequest, type Problem, problemOf, refuse, unauthorized } from "./problem.ts"

/** The org this request acts for. */
export class ActingOrg extends Context.Service<ActingOrg, OrgId>()("posthaste/adapters/http/server/auth/ActingOrg") {}

const security = {
  apiKey: HttpApiSecurity.annotate(
    HttpApiSecurity.bearer,
    OpenApi.Description,
    "An org's API key, or the operator's key together with X-Org-Id."
  )
}
const errors = [problemOf(400), problemOf(401), problemOf(403), problemOf(500), problemOf(503)]

/** For everything that belongs to an org. */
export class OrgAccess extends HttpApiMiddleware.Service<OrgAccess, { provides: ActingOrg }>()(
  "posthaste/adapters/http/server/auth/OrgAccess",
  { security, error: errors }
) {}

/** For everything that only the operator may do. */
export class OperatorAccess extends HttpApiMiddleware.Service<OperatorAccess>()(
  "posthaste/adapters/http/server/auth/OperatorAccess",
  { security, error: errors }
) {}

const ORG_HEADER = "X-Org-Id"
const isOrgId = Schema.is(OrgId)

type Refusal = Problem | StoreUnavailable

export const layer = (operatorKey: Redacted.Redacted) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const operatorHash = hashOf(Redacted.value(operatorKey))

      /** Null for the operator. */
      const holderOf = (key: string): Effect.Effect<Holder | null, Refusal> => {
        const hashed = hashOf(key)
        if (isSameHash(hashed, operatorHash)) return Effect.succeed(null)
        if (!isWellFormed(key)) {
          return Effect.fail(
            unauthorized(key === "" ? "Send the header authorization: Bearer <API key>." : "This is not an API key.")
          )
        }
        return Effect.flatMap(keys.holderOf(storedHash(hashed)), (holder) =>
          holder === null ? Effect.fail(unauthorized("This key is not known, or was revoked.")) : Effect.succeed(holder)
        )
      }

      return Context.empty().pipe(
        Context.add(OrgAccess, {
          apiKey: (handler, { credential }) =>
            Effect.matchEffect(
              Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
                Effect.flatMap(holderOf(Redacted.value(credential)), (holder) =>
                  Effect.map(actingOrg(holder, headers["x-org-id"]), (orgId) => ({ orgId, actor: actorOf(holder) }))
                )
              ),
              {
                onFailure: refuse,
                onSuccess: ({ orgId, actor }) =>
                  handler.pipe(Effect.provideService(ActingOrg, orgId), Effect.provideService(CommandedBy, actor))
              }
            )
        }),
        Context.add(OperatorAccess, {
          apiKey: (handler, { credential }) =>
            Effect.matchEffect(holderOf(Redacted.value(credential)), {
              onFailure: refuse,
              onSuccess: (holder) =>
                holder === null
                  ? Effect.provideService(handler, CommandedBy, actorOf(holder))
                  : refuse(forbidden("Only the operator's key may do this."))
            })
        })
      )
    })
  )

const actorOf = (holder: Holder | null): string => (holder === null ? "operator" : `key:${holder.id}`)

const actingOrg = (holder: Holder | null, named: string | undefined): Effect.Effect<OrgId, Problem> => {
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
