/**
 * The schema of one Posthaste; several may share a database. SQL never names it: it is the `search_path` of connections and functions, and
 * advisory locks and channels of notifications are named after it.
 */
export const SCHEMA_DEFAULT = "posthaste"

/** Needs no quoting, and leaves room for the name of a channel. */
export const isSchemaName = (text: string): boolean => /^[a-z_][a-z0-9_]{0,30}$/.test(text) && !text.startsWith("pg_")

/** Temporary tables last, so that they can't shadow ours. */
export const searchPathOf = (schema: string): string => `${schema},pg_temp`

export const channelOf = (schema: string, topic: string): string => `${schema}_${topic}`
