/**
 * What a key may hand out to another: no more than it has itself. Otherwise whoever finds a narrow `admin` key, one that is good for
 * an hour and from one network, makes a key of it that is good for ever and from anywhere.
 *
 * What is left out of a request is all there is of it, so a key that has bounds must name them for others too.
 */
import { DateTime } from "effect"
import type { Fault } from "../../../application/errors.ts"
import { allows, type Scopes, scopes } from "../../../application/keys/scopes.ts"
import type { KeyTerms } from "../../../application/ports/ApiKeys.ts"
import { rateNames } from "../../../application/ports/Orgs.ts"
import { isWithin } from "../server/callers.ts"

type Bounds = Pick<KeyTerms, "scopes" | "expiresAt" | "networks" | "limits">

/** The fields in which `asked` is wider than `own`. */
export const widerThan = (own: Bounds, asked: Bounds): ReadonlyArray<Fault> => [
  ...givenBy(asked.scopes)
    .filter((scope) => !allows(own.scopes, scope))
    .map((scope) => ({ field: "scopes", reason: `must not hold ${scope}, which the key that asks lacks` })),
  ...laterThan(own, asked),
  ...outsideOf(own, asked),
  ...rateNames.flatMap((limit) => {
    const [most, wanted] = [own.limits[limit], asked.limits[limit]]
    return most === undefined || (wanted !== undefined && wanted <= most)
      ? []
      : [{ field: `limits.${limit}`, reason: `must be ${most} at most, as of the key that asks` }]
  })
]

const givenBy = (given: Scopes) => scopes.filter((scope) => allows(given, scope))

const laterThan = (own: Bounds, asked: Bounds): ReadonlyArray<Fault> => {
  if (own.expiresAt === null) return []
  if (asked.expiresAt !== null && DateTime.isLessThanOrEqualTo(asked.expiresAt, own.expiresAt)) return []
  const reason = `must be ${DateTime.formatIso(own.expiresAt)} at the latest, when the key that asks expires`
  return [{ field: "expiresAt", reason }]
}

const outsideOf = (own: Bounds, asked: Bounds): ReadonlyArray<Fault> => {
  const within = own.networks
  if (within === null) return []
  const reason = `must lie in the networks of the key that asks: ${within.join(", ")}`
  if (asked.networks === null) return [{ field: "networks", reason }]
  return asked.networks.flatMap((one, n) => (isWithin(one, within) ? [] : [{ field: `networks[${n}]`, reason }]))
}
