/**
 * `npm test` after the compiler and the linter: every test of every project, and a closing line that says
 * how many passed (arguments are those of Vitest). A test that did not run counts as a failure: whatever it needs, it provides itself.
 */
import { parseCLI, startVitest, type TestCase } from "vitest/node"
import { installAhead } from "./servers/installed.ts"

const { filter, options } = parseCLI(["vitest", "run", ...process.argv.slice(2)])
if (filter.length === 0) installAhead()
const vitest = await startVitest(filter, { ...options, watch: false, passWithNoTests: false })
const modules = vitest.state.getTestModules()
const cases: Array<TestCase> = modules.flatMap((module) => [...module.children.allTests()])
const passed = cases.filter((test) => test.result().state === "passed").length
const notPassed = cases.filter((test) => test.result().state !== "passed")
const skipped = notPassed.filter((test) => test.result().state !== "failed")
const broken = modules.filter((module) => module.errors().length > 0).length + vitest.state.getUnhandledErrors().length
// What kept the tests from running at all, such as a server that does not start, shows only in the exit code.
const failed = notPassed.length + broken || (process.exitCode ? 1 : 0)

const slowest = modules
  .map((module) => ({ name: module.relativeModuleId, seconds: module.diagnostic().duration / 1000 }))
  .toSorted((a, b) => b.seconds - a.seconds)
  .slice(0, 15)
console.log("\nslowest files (test/longestFirst.ts has their order):")
for (const { name, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(7)} s  ${name}`)

for (const test of skipped) console.error(`did not run: ${test.module.relativeModuleId} > ${test.fullName}`)

await vitest.close()
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
