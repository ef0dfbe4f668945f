/** What strangers do in strangers.ts; stranger.ts knows how. */
export const harms = [
  "400 readers of /docs who do not read",
  "400 writers who send a byte a second",
  "3,000 connections that ask nothing",
  "50,000 wrong keys"
] as const
export type Harm = (typeof harms)[number]
