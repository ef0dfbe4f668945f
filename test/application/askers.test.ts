import { expect, it } from "vitest"
import { makeAskers } from "../../src/application/askers.ts"

it("an org that asks alone is told from several that ask within the same second", () => {
  const { asked, areSeveral } = makeAskers()
  expect(areSeveral(0)).toBe(false)
  asked("a", 0)
  asked("a", 10)
  expect(areSeveral(10)).toBe(false)
  asked("b", 20)
  expect([areSeveral(20), areSeveral(1_019), areSeveral(1_020)]).toEqual([true, true, false])
  // Who goes on asking alone is alone again; another one is one more.
  asked("b", 500)
  expect(areSeveral(1_020)).toBe(false)
  asked("a", 600)
  expect([areSeveral(1_599), areSeveral(1_600)]).toEqual([true, false])
})
