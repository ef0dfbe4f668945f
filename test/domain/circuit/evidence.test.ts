import { describe, expect, it } from "vitest"
import { evidenceOf, openingErrorOf } from "../../../src/domain/circuit/evidence.ts"
import { type FailureCode, outcomeOfFailure, outcomeOfStatus } from "../../../src/domain/delivery/classify.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"

const ofStatus = (status: number) => evidenceOf(outcomeOfStatus(status, 5, null))
const ofFailure = (code: FailureCode) => evidenceOf(outcomeOfFailure(code, 5))
const ours = (type: "Refused" | "Unreachable", code: string): AttemptOutcome => ({
  type,
  error: { code, message: "x", retryable: type === "Unreachable" },
  status: null,
  retryAfterMs: null,
  durationMs: 0
})

describe("a destination is blamed", () => {
  it.each([429, 408, 500, 502, 503, 504, 599, 100, 999])("for answering %d", (status) => {
    expect(ofStatus(status)).toBe("failure")
  })

  it.each(["timeout", "connection_failed", "dns_failed", "tls_failed", "response_broken"] as const)(
    "for %s",
    (code) => {
      expect(ofFailure(code)).toBe("failure")
    }
  )

  it("for a timeout whose outcome is not known", () => {
    const error = { code: "timeout", message: "no answer", retryable: true }
    const unknown = { type: "Unknown", error, reconcileAfterMs: 0, durationMs: 5 } as const
    expect(evidenceOf({ ...unknown, status: null })).toBe("failure")
    expect(evidenceOf({ ...unknown, error: { ...error, code: "http_502" }, status: 502 })).toBe("failure")
  })
})

describe("a destination is well", () => {
  it.each([200, 201, 204, 299])("when it takes a message with %d", (status) => {
    expect(ofStatus(status)).toBe("success")
  })

  it.each([400, 401, 404, 409, 410, 422, 425])("when it judges one with %d", (status) => {
    expect(ofStatus(status)).toBe("success")
  })
})

describe("nothing is said about a destination", () => {
  it.each(["forbidden_address", "endpoint_missing", "endpoint_invalid", "store_unavailable"] as const)(
    "by our own fault %s",
    (code) => {
      expect(ofFailure(code)).toBe("none")
    }
  )

  it.each([
    ["body_erased", "Refused"],
    ["channel_unavailable", "Refused"],
    ["channel_failed", "Unreachable"]
  ] as const)("by our own fault %s", (code, type) => {
    expect(evidenceOf(ours(type, code))).toBe("none")
  })

  it.each([301, 302, 308])("by a redirect with %d", (status) => {
    expect(ofStatus(status)).toBe("none")
  })
})

describe("a destination that put a message off", () => {
  const deferred = (scope: "message" | "lane" | "circuit"): AttemptOutcome => ({
    type: "Deferred",
    error: { code: "190", message: "access token has expired", retryable: true },
    // Whatever the status would say of another answer.
    status: 401,
    scope,
    afterMs: 0,
    durationMs: 5
  })

  it("is not blamed for wanting less of us", () => {
    for (const scope of ["message", "lane"] as const) {
      expect(evidenceOf(deferred(scope))).toBe("none")
      expect(openingErrorOf(deferred(scope))).toBeNull()
    }
  })

  it("is out of use at once when somebody must put it right", () => {
    expect(evidenceOf(deferred("circuit"))).toBe("failure")
    expect(openingErrorOf(deferred("circuit"))).toEqual({ code: "190", message: "access token has expired" })
  })

  it("is the only one that one answer puts out of use", () => {
    expect(openingErrorOf(outcomeOfStatus(500, 5, null))).toBeNull()
    expect(openingErrorOf(outcomeOfFailure("timeout", 5))).toBeNull()
  })
})
