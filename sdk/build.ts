/**
 * `node sdk/build.ts`: makes `sdk/dist`, the package as it is published. The same sources become modules (`esm`) and CommonJS
 * (`cjs`). The types are there once, with CommonJS; those of the modules lead to them.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const sdk = import.meta.dirname

const compile = (directory: string, ...options: ReadonlyArray<string>) => {
  const args = ["-p", join(sdk, "tsconfig.json"), "--outDir", directory, ...options]
  execFileSync(join(sdk, "../node_modules/.bin/tsc"), args, { stdio: ["ignore", "inherit", "inherit"] })
}

/** What users import. */
const entries = ["index", "outbox", "inbox", "saga", "webhooks"]

const commonJs = ["--module", "commonjs", "--moduleResolution", "bundler", "--verbatimModuleSyntax", "false"]

const change = (directory: string, how: (text: string, name: string) => string) => {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    writeFileSync(path, how(readFileSync(path, "utf8"), name))
  }
}

export const build = (dist: string = join(sdk, "dist")): void => {
  rmSync(dist, { recursive: true, force: true })
  compile(join(dist, "cjs"), "--emitDeclarationOnly")
  // The compiler rewrites the names of sources in code only.
  change(join(dist, "cjs"), (text) => text.replaceAll(/from "(\.\/\w+)\.ts"/g, 'from "$1.js"'))
  for (const [directory, options] of Object.entries({ cjs: commonJs, esm: [] })) {
    compile(join(dist, directory), "--declaration", "false", ...options)
  }
  // Readers have the comments of the types. Those inside of lines are for bundlers.
  for (const directory of ["cjs", "esm"]) {
    const comments = /^ *\/\*\*.*?\*\/\n|^ *\/\/.*?\n/gms
    change(join(dist, directory), (text, name) => (name.endsWith(".js") ? text.replaceAll(comments, "") : text))
  }
  for (const entry of entries) writeFileSync(join(dist, `esm/${entry}.d.ts`), `export * from "../cjs/${entry}.js"\n`)
  writeFileSync(join(dist, "cjs/package.json"), `{"type":"commonjs"}\n`)
}

if (import.meta.main) build()
