/**
 * Names of event types, and the wishes of an endpoint: a type (`order.paid`), every type with a beginning that ends at
 * a dot (`order.*`), or all (`*`).
 */

export const ALL = "*"

export const isEventType = (text: string): boolean => text !== "" && !text.includes("*")

export const isWish = (text: string): boolean =>
  text === ALL || isEventType(text) || (text.endsWith(".*") && isEventType(text.slice(0, -1)))

/** Every wish that this type fulfils: `order.paid.late` fulfils itself, `order.paid.*`, `order.*` and `*`. */
export const wishesFulfilledBy = (eventType: string): ReadonlyArray<string> => [
  eventType,
  ...[...eventType.matchAll(/\./g)].map(({ index }) => `${eventType.slice(0, index + 1)}*`),
  ALL
]

export const fulfils = (eventType: string, wishes: ReadonlyArray<string> | null): boolean =>
  wishes === null || wishesFulfilledBy(eventType).some((wish) => wishes.includes(wish))
