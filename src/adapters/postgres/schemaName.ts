/**
 * The schema that holds everything of one Posthaste: several may share a database. SQL never repeats the name; it is the
 * `search_path` of the connections and of the functions, and what is shared in a database (advisory locks, channels of
 * notifications) is named after it.
 */
export const SCHEMA_DEFAULT = "posthaste"

/** Needs no quoting, in SQL or in a connection's options, and leaves room for the name of a channel. */
export const isSchemaName = (text: string): boolean => /^[a-z_][a-z0-9_]{0,30}$/.test(text) && !text.startsWith("pg_")

/** Temporary tables come last, where they can't take the place of ours. */
export const searchPathOf = (schema: string): string => `${schema},pg_temp`

export const channelOf = (schema: string, topic: string): string => `${schema}_${topic}`
