import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import {
  classifyStatus,
  type FailureCode,
  outcomeOfFailure,
  outcomeOfStatus,
  RECONCILE_AFTER_MS,
  retryAfterMs,
  withoutDedupe
} from "../../../src/domain/delivery/classify.ts"

describe("a status", () => {
  it.each([200, 201, 202, 204, 299])("%i is a yes", (status) => expect(classifyStatus(status)).toBe("accepted"))

  it.each([400, 401, 403, 404, 405, 410, 413, 418, 422, 451, 499])("%i is a lasting no", (status) =>
    expect(classifyStatus(status)).toBe("refused")
  )

  it.each([408, 409, 425, 429, 500, 501, 502, 503, 504, 599])("%i is a no for now", (status) =>
    expect(classifyStatus(status)).toBe("retry")
  )

  it.each([300, 301, 302, 303, 304, 307, 308])("%i is a redirect, and a redirect is a failure for now", (status) => {
    expect(classifyStatus(status)).toBe("retry")
    expect(outcomeOfStatus(status, 1, null)).toMatchObject({ type: "Unreachable", error: { code: "redirect" } })
  })

  it.each([0, 1, 100, 101, 103, 199, 600, 999, -200, Number.NaN])("%d, which means nothing, is tried again", (status) =>
    expect(classifyStatus(status)).toBe("retry")
  )

  it("is a yes only between 200 and 299, and a lasting no only between 400 and 499", () => {
    fc.assert(
      fc.property(fc.integer({ min: -10, max: 1200 }), (status) => {
        const verdict = classifyStatus(status)
        expect(verdict === "accepted").toBe(status >= 200 && status <= 299)
        if (verdict === "refused") expect(Math.floor(status / 100)).toBe(4)
      })
    )
  })
})

describe("the outcome of a status", () => {
  it("is delivery at once when it is a yes", () => {
    expect(outcomeOfStatus(204, 12, null)).toEqual({
      type: "Accepted",
      status: 204,
      providerMessageId: null,
      delivered: true,
      durationMs: 12
    })
  })

  it("carries status, code and the wait asked for when it is a no for now", () => {
    expect(outcomeOfStatus(429, 12, 3000)).toEqual({
      type: "Unreachable",
      status: 429,
      error: { code: "http_429", message: "answered 429", retryable: true },
      retryAfterMs: 3000,
      durationMs: 12
    })
  })

  it("is a refusal that is not retryable when it is a lasting no", () => {
    expect(outcomeOfStatus(410, 12, 3000)).toEqual({
      type: "Refused",
      status: 410,
      error: { code: "http_410", message: "answered 410", retryable: false },
      durationMs: 12
    })
  })
})

describe("the outcome of a failure", () => {
  const later: ReadonlyArray<FailureCode> = [
    "timeout",
    "connection_failed",
    "dns_failed",
    "tls_failed",
    "response_broken"
  ]
  const never: ReadonlyArray<FailureCode> = ["forbidden_address", "endpoint_missing", "endpoint_invalid"]

  it.each(["store_unavailable", "no_descriptors"] as const)("%s is our own fault, so it uses up no attempt", (code) =>
    expect(outcomeOfFailure(code, 5)).toMatchObject({ type: "Deferred", error: { code }, status: null, afterMs: 5_000 })
  )

  it.each(later)("%s may go well another time", (code) =>
    expect(outcomeOfFailure(code, 5)).toMatchObject({
      type: "Unreachable",
      error: { code, retryable: true },
      status: null,
      retryAfterMs: null,
      durationMs: 5
    })
  )

  it.each(never)("%s will not heal by waiting", (code) =>
    expect(outcomeOfFailure(code, 5)).toMatchObject({
      type: "Refused",
      error: { code, retryable: false },
      status: null
    })
  )
})

describe("Retry-After", () => {
  const now = Date.UTC(2026, 10, 18, 12, 0, 0)

  it.each([
    ["0", 0],
    ["120", 120_000],
    [" 7 ", 7_000],
    ["Wed, 18 Nov 2026 12:01:30 GMT", 90_000],
    ["Wed, 18 Nov 2026 11:59:00 GMT", 0],
    ["9".repeat(400), Number.MAX_SAFE_INTEGER]
  ])("%j asks to wait %d ms", (header, wait) => expect(retryAfterMs(header, now)).toBe(wait))

  it.each([
    "",
    "soon",
    "-5",
    "+5",
    "1.5",
    "1e99",
    "0x10",
    "Infinity",
    "5 seconds",
    "apples 5",
    "2026-11-18T12:01:30Z",
    "Wed, 99 Nov 2026 12:01:30 GMT",
    "Wed, 18 Nov 2026 25:01:30 GMT",
    "18 Nov 2026",
    "120, 130",
    null,
    undefined
  ])("%j asks nothing that can be understood", (header) => expect(retryAfterMs(header, now)).toBeNull())

  it("is never negative and never an error, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string(), (header) => {
        const wait = retryAfterMs(header, now)
        expect(wait === null || (Number.isSafeInteger(wait) && wait >= 0)).toBe(true)
      })
    )
  })
})

describe("where a duplicate would not be dropped", () => {
  const ofStatus = (status: number) => withoutDedupe(outcomeOfStatus(status, 5, 7), true)

  it("a try may be repeated when no byte of it had left, whatever went wrong", () => {
    for (const code of ["timeout", "connection_failed", "dns_failed", "tls_failed"] as const) {
      const outcome = outcomeOfFailure(code, 5)
      expect(withoutDedupe(outcome, false)).toEqual(outcome)
    }
  })

  it("a try that was begun and not answered is in doubt", () => {
    for (const code of ["timeout", "connection_failed", "response_broken"] as const) {
      const outcome = outcomeOfFailure(code, 5)
      expect(withoutDedupe(outcome, true)).toMatchObject({
        type: "Unknown",
        error: { code },
        status: null,
        reconcileAfterMs: RECONCILE_AFTER_MS,
        durationMs: 5
      })
    }
  })

  it.each([200, 204, 400, 404, 408, 422, 429])("%i is as clear as anywhere", (status) => {
    expect(ofStatus(status)).toEqual(outcomeOfStatus(status, 5, 7))
  })

  it.each([100, 300, 301, 302, 303, 304, 307, 308, 409, 425, 500, 501, 502, 503, 504, 599, 999])(
    "%i leaves it open",
    (status) => {
      expect(ofStatus(status)).toMatchObject({ type: "Unknown", status })
    }
  )
})
