/**
 * Ends `serve` at its first look at the settings, and then makes what lives long, over and over, in one place of the code. Says how many of a
 * thousand that the same place makes next are made among the young ones.
 */
import { Effect } from "effect"
import { serve } from "../../src/main.ts"

const exit = await Effect.runPromise(Effect.exit(Effect.scoped(serve)))
if (exit._tag !== "Failure") throw new Error("it was not to start")

const make = (n) => [n, n + 1, n + 2, n + 3]
const keep = (count, kept) => {
  for (let n = 0; n < count; n++) kept[n % kept.length] = make(n)
  return kept
}
keep(1_500_000, new Array(250_000))
// A run of the collector in between would make old of young.
globalThis.gc({ type: "minor" })
// biome-ignore format: V8's own syntax, on a line of its own.
const isYoung = new Function("it", "return %InYoungGeneration(it)")
const next = keep(1_000, new Array(1_000))
console.log(next.filter(isYoung).length)
