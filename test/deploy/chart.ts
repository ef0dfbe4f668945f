/**
 * `HELM=/path/to/helm npm run chart` lints the chart and renders it with every file of values in `chart/`, by Helm itself. What
 * it printed is kept in `rendered/`, under the digest of what it was made from, so that the tests need no Helm and still notice a
 * template that was changed and not rendered again. Values that the chart must refuse are called `refused-…`.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const chart = join(import.meta.dirname, "../../deploy/helm/posthaste")
const values = join(import.meta.dirname, "chart")
const rendered = join(import.meta.dirname, "rendered")

export const cases: ReadonlyArray<string> = readdirSync(values)
  .map((file) => file.replace(/\.yaml$/, ""))
  .toSorted()

const filesOf = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()

const firstLineOf = (name: string): string => {
  const digest = createHash("sha256")
  for (const file of [...filesOf(chart), join(values, `${name}.yaml`)]) digest.update(readFileSync(file)).update("\0")
  return `# npm run chart: ${digest.digest("hex")}\n`
}

/** What Helm printed for these values; throws when chart or values are not those that it read. */
export const renderedOf = (name: string): string => {
  const text = readFileSync(join(rendered, `${name}.txt`), "utf8")
  const first = firstLineOf(name)
  if (!text.startsWith(first)) {
    throw new Error(`the chart has changed since rendered/${name}.txt: run HELM=/path/to/helm npm run chart`)
  }
  return text.slice(first.length)
}

const helm = (...args: ReadonlyArray<string>) =>
  spawnSync(process.env["HELM"] ?? "helm", args, { encoding: "utf8", maxBuffer: 2 ** 24 })

const render = (name: string): void => {
  const file = join(values, `${name}.yaml`)
  const mustFail = name.startsWith("refused-")
  const lint = helm("lint", "--strict", chart, "--values", file)
  const { status, stdout, stderr } = helm("template", "ph", chart, "--namespace", "shop", "--values", file)
  if (lint.error !== undefined) throw lint.error
  if (mustFail === (status === 0) || (!mustFail && lint.status !== 0)) {
    throw new Error(`${name}: ${lint.stdout}${lint.stderr}${stderr}`)
  }
  writeFileSync(join(rendered, `${name}.txt`), firstLineOf(name) + (mustFail ? stderr : stdout))
}

if (import.meta.main) {
  for (const name of cases) render(name)
  console.log(`${cases.length} renderings by ${helm("version", "--short").stdout.trim()}`)
}
