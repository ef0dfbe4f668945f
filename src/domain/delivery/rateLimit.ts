/**
 * How many requests may go to a destination in a time, over all workers. A claim hands out no more than the limit lets through at that
 * moment, evenly spaced (functions/rate_allowance.sql); a message that is late after its claim goes late.
 */
export interface RateLimit {
  readonly limit: number
  readonly periodMs: number
}
