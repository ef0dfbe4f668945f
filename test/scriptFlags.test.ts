/** What a script says of flags that it can't go by. Nothing may have begun by then. */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { number, on, readFlags, someOf, text, whole } from "./servers/scriptFlags.ts"

const flags = {
  minutes: number(10, [0.5, 60]),
  seed: whole(null, [0, 99]),
  only: someOf(["kill", "freeze"]),
  reply: text("a text", ""),
  keep: on
}
const others = "there are --minutes, --seed, --only, --reply, --keep; --help tells more"

describe("flags", () => {
  it("are as they are when nobody says anything", () => {
    expect(readFlags(flags, [])).toEqual({ minutes: 10, seed: null, only: ["kill", "freeze"], reply: "", keep: false })
  })

  it("are as they are said", () => {
    const args = ["--minutes", "0.5", "--seed=7", "--only", "freeze", "--reply", "", "--keep"]
    expect(readFlags(flags, args)).toEqual({ minutes: 0.5, seed: 7, only: ["freeze"], reply: "", keep: true })
    expect(readFlags({}, ["hanging"], (word) => word === "hanging")).toEqual({})
  })

  it.each([
    [["--minute", "5"], `--minute is no flag: ${others}`],
    [["--toString"], `--toString is no flag: ${others}`],
    [["-x"], `-x is no flag: ${others}`],
    [["5"], `"5" means nothing here: ${others}`],
    [["--minutes", "soon"], '--minutes takes a number from 0.5 to 60, not "soon"'],
    [["--minutes", "0"], '--minutes takes a number from 0.5 to 60, not "0"'],
    [["--minutes", "-5"], '--minutes takes a number from 0.5 to 60, not "-5"'],
    [["--minutes="], '--minutes takes a number from 0.5 to 60, not ""'],
    [["--minutes"], "--minutes takes a number from 0.5 to 60, and nothing was given"],
    [["--minutes", "--keep"], "--minutes takes a number from 0.5 to 60, and nothing was given"],
    [["--seed", "1.5"], '--seed takes a whole number from 0 to 99, not "1.5"'],
    [["--seed", "0x10"], '--seed takes a whole number from 0 to 99, not "0x10"'],
    [["--only", "kill,burn"], '--only takes some of kill,freeze, not "kill,burn"'],
    [["--only", ""], '--only takes some of kill,freeze, not ""'],
    [["--keep=yes"], '--keep takes no value, not "yes"']
  ])("%j are refused, by name and with what is allowed", (args, line) => {
    expect(readFlags(flags, args)).toBe(line)
  })

  it("are refused where there are none", () => {
    expect(readFlags({}, ["--fast"])).toBe("--fast is no flag: there are no flags; --help tells more")
  })
})

describe("scripts that people run", () => {
  const root = join(import.meta.dirname, "..")
  const run = (arg: string) => spawnSync(process.execPath, [join(root, "test/fuzz/run.ts"), arg], { encoding: "utf8" })

  it("name a flag that there is not, in one line, and end with 2 before anything begins", () => {
    const { status, stdout, stderr } = run("--nonsense")
    expect(stderr).toMatch(/^--nonsense is no flag: there are --requests, .*\n$/)
    expect([status, stdout]).toEqual([2, ""])
  })

  it("tell how they are used", () => {
    const { status, stdout } = run("--help")
    expect(stdout).toMatch(/^`npm run fuzz`: /)
    expect(stdout.endsWith("npm run fuzz -- --requests 20000 --seed 7\n")).toBe(true)
    expect(status).toBe(0)
  })

  it("read their flags here", () => {
    const scripts = ["bench", "test/chaos", "test/fuzz", "demo", "examples/orders"].flatMap((folder) =>
      readdirSync(join(root, folder))
        .filter((file) => file.endsWith(".ts"))
        .map((file) => [`${folder}/${file}`, readFileSync(join(root, folder, file), "utf8")] as const)
    )
    const told = scripts.filter(([, source]) => /^\/\*\*\n \* `(?:npm run|npx node) /.test(source))
    expect(told.map(([name]) => name)).toContain("bench/rekey.ts")
    expect(told.filter(([, source]) => !/^.*scriptFlags\(/m.test(source)).map(([name]) => name)).toEqual([])
  })
})
