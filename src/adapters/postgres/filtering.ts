import { DateTime } from "effect"

/**
 * Only the conditions that were asked for, as SQL whose values are added to `values`, so that each combination gets the
 * plan it deserves. A condition is everything of it but its value, such as `created_at >`.
 */
export const conditionsOf = <Filter extends object>(
  conditions: ReadonlyArray<readonly [keyof Filter, string]>,
  filter: Filter,
  values: Array<unknown>
): ReadonlyArray<string> =>
  conditions.flatMap(([field, condition]) => {
    const value: unknown = filter[field]
    if (value === undefined) return []
    return [`${condition} $${values.push(DateTime.isDateTime(value) ? DateTime.formatIso(value) : value)}`]
  })
