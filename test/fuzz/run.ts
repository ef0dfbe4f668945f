/**
 * `npm run fuzz`: 100,000 requests, made from the OpenAPI document, against a Posthaste that it starts on data of its own, or
 * against the one at `--url` with the operator's key in POSTHASTE_OPERATOR_KEY.
 *
 *   npm run fuzz -- --requests 20000 --seed 7
 */
import { randomBytes } from "node:crypto"
import { rmSync } from "node:fs"
import { leaveNothingBehind, temporaryDirectory } from "../servers/leftovers.ts"
import { metaThatRefuses } from "../servers/metaThatRefuses.ts"
import { startPosthaste, stop } from "../servers/posthaste.ts"
import { scriptFlags, text, whole } from "../servers/scriptFlags.ts"
import { fuzz } from "./fuzz.ts"

const {
  requests,
  seed,
  "at-once": atOnce,
  url
} = scriptFlags({
  requests: whole(100_000),
  seed: whole(1, [0, 999_999_999]),
  "at-once": whole(8, [1, 1_000]),
  url: text("a URL", null)
})

const HANGS_AFTER_MS = 2000

const meta = await metaThatRefuses()
leaveNothingBehind()
const directory = temporaryDirectory()
const key = process.env["POSTHASTE_OPERATOR_KEY"] ?? randomBytes(24).toString("base64url")
const own =
  url === null
    ? await startPosthaste({
        POSTHASTE_DATA_DIR: directory,
        POSTHASTE_OPERATOR_KEY: key,
        // Nothing leaves: endpoints are made of whatever comes, and nobody asked them.
        POSTHASTE_ROLES: "api,relay,projector",
        POSTHASTE_LOG_FORMAT: "text",
        WHATSAPP_BASE_URL: meta.url
      })
    : null

const since = performance.now()
const report = await fuzz({
  url: own?.url ?? url!,
  key,
  org: "fuzz",
  requests,
  seed,
  atOnce,
  answerWithinMs: HANGS_AFTER_MS,
  progress: (done) => {
    if (done % 10_000 === 0) console.error(`${done} requests, ${Math.round((performance.now() - since) / 1000)} s`)
  }
})
const crashed = own !== null && own.process.exitCode !== null
if (own !== null && !crashed) await stop(own)
meta.stop()
rmSync(directory, { recursive: true, force: true })

console.log(`seed ${seed}: ${requests} requests to ${report.operations} operations`)
for (const [status, count] of [...report.byStatus].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  console.log(`${count}\t${status}`)
console.log(`slowest: ${Math.round(report.slowestMs)} ms`)
for (const { what, operationId, command } of report.findings) console.log(`\n${operationId}: ${what}\n  ${command}`)
if (crashed) console.log(`\nPosthaste ended with ${own?.process.exitCode}:\n${own?.printed().slice(-4000)}`)
const fine = report.findings.length === 0 && !crashed
console.log(`\n${fine ? "nothing found" : `${report.findings.length} found`}${crashed ? ", and it crashed" : ""}`)
if (own !== null && !fine)
  console.log(
    own
      .printed()
      .split("\n")
      .filter((line) => /ERROR|bug/.test(line))
      .slice(0, 40)
      .join("\n")
  )
process.exitCode = fine ? 0 : 1
