/**
 * Imports point inward, and the inner layers own no clock, no dice and no I/O.
 *
 * It reads source text, not a syntax tree: comments are taken out first, and any way to write an import
 * is seen. What it cannot see is a name built at run time.
 */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "../src")

/** The part of `effect` that is plain data. Anything that can run, wait or fail stays outside the domain. */
const dataModules = new Set([
  "Array",
  "DateTime",
  "Duration",
  "Match",
  "Option",
  "Order",
  "Predicate",
  "Record",
  "Result",
  "Schema",
  "SchemaTransformation",
  "Struct"
])
/** XState changes between major versions; what all machines share and two files of each know it. */
const knowsXstate = /^domain\/(?:\w+\/)?(?:machine|decider)\.ts$/

interface Import {
  /** A path below src/ for our own files, a package name otherwise. */
  readonly target: string
  readonly isOurs: boolean
  /** What is imported by name; null for `*`, a side effect or `import()`. */
  readonly names: ReadonlyArray<string> | null
}

/** Why a file may not import what it imports; null when it may. Each layer sees only what is above it. */
const rules: Record<string, (file: string, found: Import) => string | null> = {
  domain: (file, { target, isOurs, names }) => {
    if (isOurs) return target.startsWith("domain/") ? null : `domain may not import ${target}`
    if (target === "xstate") return knowsXstate.test(file) ? null : "only machine.ts and decider.ts may import xstate"
    if (target !== "effect") return `domain may not import ${target}`
    if (names === null) return "domain must name what it imports from effect"
    const effectful = names.filter((name) => !dataModules.has(name))
    return effectful.length === 0 ? null : `domain may not import ${effectful.join(", ")} from effect`
  },
  application: (_, { target, isOurs }) => {
    const allowed = isOurs ? /^(domain|application)\//.test(target) : target === "effect"
    return allowed ? null : `application may not import ${target}`
  },
  adapters: (file, { target, isOurs }) => {
    if (!isOurs || /^(domain|application)\//.test(target)) return null
    // Which release it is may be told to the outside.
    if (target === "../package.json") return null
    // A channel is an adapter of its own, in the folder that all channels share.
    const own = /^adapters\/(?:channels\/)?[\w-]+\//.exec(file)![0]
    if (target.startsWith(own)) return null
    // What every channel over the network needs. It needs none of them.
    if (target.startsWith("adapters/channels/net/")) return null
    // The contract of all ways in. It needs none of them.
    if (target.startsWith("adapters/api/")) return null
    // How RabbitMQ is spoken to, for our own broker and for those of orgs. It knows neither.
    if (target.startsWith("adapters/rabbitmq/client/")) return null
    return target.startsWith("adapters/")
      ? `one adapter may not import another (${target})`
      : `an adapter may not import ${target}`
  },
  // These put the parts together: for a process that starts, and for whoever types a command.
  setup: () => null,
  cli: () => null
}

/** Where clock, dice and I/O belong. */
const outer: ReadonlySet<string> = new Set(["adapters", "setup", "cli"])

const impure =
  /\bDate\.now\b|\bnew Date\b|(?<![.\w])Date\(|\bMath\.random\b|(?<![.\w])(?:process|performance|crypto|globalThis)\s*[.[]|(?<![.\w])(?:setTimeout|setInterval|setImmediate|queueMicrotask|fetch|require)\b/g

const string = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/.source
const template = /`(?:\\.|[^`\\])*`/.source
const comment = /\/\*[\s\S]*?\*\/|\/\/.*/.source

const withoutComments = (source: string) =>
  source.replaceAll(new RegExp(`(${string}|${template})|${comment}`, "g"), (_, kept: string | undefined) => kept ?? " ")
const withoutStrings = (source: string) => source.replaceAll(new RegExp(string, "g"), '""')

const importForms = [
  // import … from "x", export … from "x"
  /\b(?:import|export)\s+(?:type\s+)?(?<names>[\w$*{][^;"'`]*?)\s*from\s*["'](?<target>[^"']+)["']/g,
  // import "x"
  /\bimport\s*["'](?<target>[^"']+)["']/g,
  // import("x"), whatever stands in the brackets
  /\bimport\s*\(\s*(?<target>[^)]*?)\s*\)/g
]

const namesOf = (clause: string | undefined): Import["names"] => {
  const braces = /^\{(?<inside>[^}]*)\}$/.exec(clause?.trim() ?? "")
  if (braces === null) return null
  return braces
    .groups!.inside!.split(",")
    .map((name) =>
      name
        .trim()
        .replace(/^type\s+/, "")
        .replace(/\s+as\s+.*$/, "")
    )
    .filter((name) => name !== "")
}

const importsOf = (file: string, source: string): ReadonlyArray<Import> =>
  importForms.flatMap((form) =>
    [...source.matchAll(form)].map(({ groups }) => {
      const target = groups!.target!.replace(/^["'`](.*)["'`]$/, "$1")
      const isOurs = target.startsWith(".")
      return {
        target: isOurs ? normalize(join(dirname(file), target)) : target,
        isOurs,
        names: namesOf(groups!.names)
      }
    })
  )

/** Every broken rule of one file, as `file: rule`. Files right below src/ put the parts together and may import all. */
const violationsOf = (file: string, text: string): ReadonlyArray<string> => {
  const source = withoutComments(text)
  const [layer, ...rest] = file.split("/")
  if (rest.length === 0) return []
  const rule = rules[layer!]
  if (rule === undefined) return [`${file}: no rule says what ${layer} may import`]
  const imports = importsOf(file, source).flatMap((found) => rule(file, found) ?? [])
  const impurities = outer.has(layer!)
    ? []
    : [...withoutStrings(source).matchAll(impure)].map(([found]) => `${layer} may not use ${found}`)
  return [...imports, ...impurities].map((broken) => `${file}: ${broken}`)
}

const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /\.[cm]?[jt]sx?$/.test(file))

describe("the source tree", () => {
  it("has a domain, an application and adapters to look at", () => {
    for (const layer of Object.keys(rules)) expect(files.some((file) => file.startsWith(`${layer}/`))).toBe(true)
  })

  it("imports inward only, and keeps clock, dice and I/O out of domain and application", () => {
    expect(files.flatMap((file) => violationsOf(file, readFileSync(join(root, file), "utf8")))).toEqual([])
  })
})

describe("the simulation's judge", () => {
  it("asks nothing of the code it judges: it knows the shapes of facts and how they are stored, no rule", () => {
    const judge = join(import.meta.dirname, "simulation/judge")
    const asked = readdirSync(judge).flatMap((file) => {
      const source = withoutComments(readFileSync(join(judge, file), "utf8")).replaceAll(/^import type [^\n]*$/gm, "")
      return importsOf(join("test/simulation/judge", file), source)
        .filter(({ target }) => target.startsWith("src/"))
        .flatMap(({ names }) => names ?? ["everything"])
        .map((name) => `${file}: ${name}`)
    })
    expect(asked.filter((name) => !name.endsWith(": fromRecorded"))).toEqual([])
  })
})

describe("the check", () => {
  it.each([
    [
      "domain/a.ts",
      `import { layer } from "../adapters/postgres/Postgres.ts"`,
      "domain may not import adapters/postgres/Postgres.ts"
    ],
    [
      "domain/a.ts",
      `import type { Queue } from "../application/ports/Queue.ts"`,
      "domain may not import application/ports/Queue.ts"
    ],
    ["domain/a.ts", `export * from "../application/deliver.ts"`, "domain may not import application/deliver.ts"],
    ["domain/a.ts", `import "../main.ts"`, "domain may not import main.ts"],
    ["domain/a.ts", `import x from "../../package.json"`, "domain may not import ../package.json"],
    ["domain/a.ts", `const fs = await import("node:fs")`, "domain may not import node:fs"],
    ["domain/a.ts", `const m = import(name)`, "domain may not import name"],
    ["domain/a.ts", `import { createHash } from "node:crypto"`, "domain may not import node:crypto"],
    ["domain/a.ts", `import { Schema, Effect } from "effect"`, "domain may not import Effect from effect"],
    [
      "domain/a.ts",
      `import {\n  Schema,\n  type Clock as Time\n} from "effect"`,
      "domain may not import Clock from effect"
    ],
    ["domain/a.ts", `import * as E from "effect"`, "domain must name what it imports from effect"],
    ["domain/a.ts", `import { now } from "effect/Clock"`, "domain may not import effect/Clock"],
    [
      "domain/message/transitions.ts",
      `import { transition } from "xstate"`,
      "only machine.ts and decider.ts may import xstate"
    ],
    ["application/a.ts", `import { Pool } from "pg"`, "application may not import pg"],
    ["application/a.ts", `import { HttpClient } from "effect/http"`, "application may not import effect/http"],
    [
      "application/a.ts",
      `import { a } from "../adapters/http/api.ts"`,
      "application may not import adapters/http/api.ts"
    ],
    ["application/ports/a.ts", `import { main } from "../../main.ts"`, "application may not import main.ts"],
    [
      "adapters/http/a.ts",
      `import { a } from "../postgres/Postgres.ts"`,
      "one adapter may not import another (adapters/postgres/Postgres.ts)"
    ],
    [
      "adapters/http/deep/a.ts",
      `await import("../../http2/b.ts")`,
      "one adapter may not import another (adapters/http2/b.ts)"
    ],
    [
      "adapters/channels/net/a.ts",
      `import { a } from "../webhook/b.ts"`,
      "one adapter may not import another (adapters/channels/webhook/b.ts)"
    ],
    ["adapters/http/a.ts", `import { main } from "../../main.ts"`, "an adapter may not import main.ts"],
    ["adapters/http/a.ts", `import { send } from "../../cli/send.ts"`, "an adapter may not import cli/send.ts"],
    ["application/a.ts", `import { send } from "../cli/send.ts"`, "application may not import cli/send.ts"],
    ["domain/a.ts", "const at = Date.now()", "domain may not use Date.now"],
    ["domain/a.ts", "const at = new Date()", "domain may not use new Date"],
    ["domain/a.ts", `const at = \`\${Date.now()}\``, "domain may not use Date.now"],
    ["application/a.ts", "const die = Math.random()", "application may not use Math.random"],
    ["application/a.ts", "const key = process.env.KEY", "application may not use process."],
    ["application/a.ts", "const id = crypto.randomUUID()", "application may not use crypto."],
    ["application/a.ts", "const at = performance.now()", "application may not use performance."],
    ["application/a.ts", "setTimeout(wake, 10)", "application may not use setTimeout"],
    ["application/a.ts", "setInterval(wake, 10)", "application may not use setInterval"],
    ["application/a.ts", "setImmediate(wake)", "application may not use setImmediate"],
    ["application/a.ts", "queueMicrotask(wake)", "application may not use queueMicrotask"],
    ["console/a.ts", "", "no rule says what console may import"]
  ])("sees through %s: %s", (file, source, rule) => {
    expect(violationsOf(file, source)).toEqual([`${file}: ${rule}`])
  })

  it.each([
    ["domain/message/a.ts", `import { DateTime, Schema } from "effect"\nimport { isUuid } from "../ids.ts"`],
    ["domain/message/machine.ts", `import { assign, setup } from "xstate"`],
    ["application/a.ts", `import { Effect } from "effect"\nimport { Queue } from "./ports/Queue.ts"`],
    ["application/a.ts", `// Date.now is not for us\n/* import "pg" */\nconst why = "never call setTimeout( here"`],
    ["application/a.ts", "const at = step.process.id + settings.fetch"],
    ["adapters/http/a.ts", `import { b } from "./b.ts"\nimport pg from "pg"\nconst at = Date.now()`],
    ["adapters/channels/webhook/a.ts", `import { b } from "../net/b.ts"`],
    ["cli/a.ts", `import { serve } from "../main.ts"\nconst at = Date.now()`],
    [
      "main.ts",
      `import * as Memory from "./adapters/postgres/Postgres.ts"\nimport * as Http from "./adapters/http/api.ts"`
    ]
  ])("lets %s be: %s", (file, source) => {
    expect(violationsOf(file, source)).toEqual([])
  })
})

/**
 * The ratchet: how large the house is. A number may only fall, or rise in a commit that names the promise that needs it: what nothing
 * holds grows by one well-meant mechanism after another.
 */
const most = {
  "lines of src": 43_940,
  "lines of test": 68_500,
  "files of src": 475,
  "lines of the longest file": 450,
  "words of comments": 38_450,
  tables: 46,
  "SQL functions": 57,
  ports: 34,
  settings: 40,
  "rooms in a circle of imports": 0
}

const linesIn = (text: string) => text.split("\n").length - 1
const readAll = (folder: string, ending: RegExp): ReadonlyArray<readonly [file: string, text: string]> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => ending.test(file))
    .map((file) => [file, readFileSync(join(folder, file), "utf8")])
const countIn = (texts: ReadonlyArray<readonly [string, string]>, what: RegExp) =>
  texts.reduce((sum, [, text]) => sum + (text.match(what)?.length ?? 0), 0)

/** The room of a file: a folder of its layer; the files right in a layer are one room. */
const roomOf = (file: string): string => {
  const parts = file.split("/").slice(0, -1)
  return parts.slice(0, parts[0] === "adapters" ? 3 : 2).join("/")
}

/** The rooms that import each other, directly or by others, as pairs of a room and where it leads. */
const roomsInCircles = (sources: ReadonlyArray<readonly [file: string, text: string]>): ReadonlyArray<string> => {
  const leads = new Map<string, Set<string>>()
  for (const [file, text] of sources) {
    for (const { target, isOurs } of importsOf(file, withoutComments(text))) {
      const [from, to] = [roomOf(file), roomOf(target)]
      if (!isOurs || from === to || !target.includes("/")) continue
      leads.set(from, (leads.get(from) ?? new Set()).add(to))
    }
  }
  const reachedFrom = (room: string): ReadonlySet<string> => {
    const reached = new Set<string>()
    const look = (from: string) => {
      for (const to of leads.get(from) ?? []) {
        if (reached.has(to)) continue
        reached.add(to)
        look(to)
      }
    }
    look(room)
    return reached
  }
  return [...leads.keys()].filter((room) => reachedFrom(room).has(room)).toSorted()
}

describe("the size of the house", () => {
  const src = readAll(root, /\.(ts|sql)$/)
  const code = src.filter(([file]) => file.endsWith(".ts"))
  const sql = src.filter(([file]) => file.endsWith(".sql"))
  const comments = [
    ...code.map(([, text]) => text.match(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g) ?? []),
    ...sql.map(([, text]) => text.match(/--.*/g) ?? [])
  ]
  const circles = roomsInCircles(code)
  const is: typeof most = {
    "lines of src": src.reduce((sum, [, text]) => sum + linesIn(text), 0),
    "lines of test": readAll(import.meta.dirname, /\.ts$/).reduce((sum, [, text]) => sum + linesIn(text), 0),
    "files of src": src.length,
    "lines of the longest file": Math.max(...src.map(([, text]) => linesIn(text))),
    "words of comments":
      comments
        .flat()
        .join(" ")
        .match(/[A-Za-z][\w'’-]*/g)?.length ?? 0,
    tables: countIn(sql, /^create table/gm) + countIn(code, /create table if not exists/g),
    "SQL functions": sql.filter(([file]) => file.includes("/functions/")).length,
    ports: countIn(
      code.filter(([file]) => file.startsWith("application/ports/")),
      /extends Context\.Service</g
    ),
    settings: new Set(code.find(([file]) => file === "setup/config.ts")![1].match(/"[A-Z][A-Z_]+"/g)).size,
    "rooms in a circle of imports": circles.length
  }

  it.each(Object.keys(most) as ReadonlyArray<keyof typeof most>)("has no more %s than it had", (what) => {
    expect(is[what], what.includes("circle") ? circles.join(", ") : what).toBeLessThanOrEqual(most[what])
  })
})
