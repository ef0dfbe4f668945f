/**
 * Names of types of events, and what an endpoint may say that it wants: a type (`order.paid`), every type with a
 * beginning that ends at a dot (`order.*`), or all (`*`, which is also what an endpoint without a wish gets).
 */

/** What an endpoint without a list of its own wants. */
export const ALL = "*"

/** A type names one thing; the asterisk is for wishes. */
export const isEventType = (text: string): boolean => text !== "" && !text.includes("*")

export const isWish = (text: string): boolean =>
  text === ALL || isEventType(text) || (text.endsWith(".*") && isEventType(text.slice(0, -1)))

/** Every wish that this type fulfils: `order.paid.late` fulfils itself, `order.paid.*`, `order.*` and `*`. */
export const wishesFulfilledBy = (eventType: string): ReadonlyArray<string> => [
  eventType,
  ...[...eventType.matchAll(/\./g)].map(({ index }) => `${eventType.slice(0, index + 1)}*`),
  ALL
]

/** The wish as a rule for types: for whoever has a wish and looks for the types that fulfil it. */
export const fulfils = (eventType: string, wishes: ReadonlyArray<string> | null): boolean =>
  wishes === null || wishesFulfilledBy(eventType).some((wish) => wishes.includes(wish))
