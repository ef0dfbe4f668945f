import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { codeClasses, parseCodes } from "../../../../src/adapters/channels/whatsapp/errors.ts"

describe("a table of codes", () => {
  it("is read with blanks and without, and may be empty", () => {
    expect(Result.getOrThrow(parseCodes(" 131026=permanent ,131047 = temporary,"))).toEqual(
      new Map([
        [131026, "permanent"],
        [131047, "temporary"]
      ])
    )
    expect(Result.getOrThrow(parseCodes(""))).toEqual(new Map())
    expect(Result.getOrThrow(parseCodes(codeClasses.map((name, n) => `${n}=${name}`).join())).size).toBe(7)
  })

  it.each([
    ["131026", 'holds "131026"; an entry looks like 131026=permanent'],
    ["x=permanent", 'holds "x=permanent"; an entry looks like 131026=permanent'],
    ["1=permanent,1=pair", "names the code 1 twice"],
    ["1=retry", 'knows the classes throttle, pair, temporary, wait, permanent, account, standing, not "retry"']
  ])("that can't be meant is told: %s", (text, problem) => {
    expect(parseCodes(text)).toEqual(Result.fail(problem))
  })
})
