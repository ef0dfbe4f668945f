/**
 * The rate limit of a destination over all workers, evenly spaced (functions/rate_allowance.sql). It applies at the
 * claim: a message that is late after it goes late.
 */
export interface RateLimit {
  readonly limit: number
  readonly periodMs: number
}
