/** Jobs in the order in which they are taken: orgs by their names, from the one after whose was last, and each org's by their time. */
import { DateTime } from "effect"
import type { OrgId } from "../../src/domain/ids.ts"

interface Due {
  readonly orgId: OrgId
  readonly nextAt: DateTime.Utc
}

export const inTurn = <Job>(
  jobs: ReadonlyArray<Job>,
  dueOf: (job: Job) => Due,
  last: OrgId | null
): ReadonlyArray<Job> => {
  const isLater = (orgId: OrgId) => last === null || orgId > last
  return jobs.toSorted((one, other) => {
    const [a, b] = [dueOf(one), dueOf(other)]
    if (isLater(a.orgId) !== isLater(b.orgId)) return isLater(a.orgId) ? -1 : 1
    if (a.orgId !== b.orgId) return a.orgId < b.orgId ? -1 : 1
    return DateTime.Order(a.nextAt, b.nextAt)
  })
}
