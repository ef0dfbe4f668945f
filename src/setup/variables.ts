/**
 * Reads settings from variables. A bad value stops the start with one line that quotes no secret. Empty counts as
 * absent, as in env files.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Config, Duration, Effect, Option, Result, Schema } from "effect"

export class WrongSetting extends Schema.TaggedError<WrongSetting>()("WrongSetting", {
  variable: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.variable} ${this.problem}`
  }
}

export type Parse<A> = (text: string) => Result.Result<A, string>

export const variable = <A, Fallback extends A | null = null>(
  name: string,
  parse: Parse<A>,
  fallback: Fallback = null as Fallback
): Effect.Effect<A | Fallback, WrongSetting> =>
  Config.option(Config.String(name)).pipe(
    Effect.mapError((error) => new WrongSetting({ variable: name, problem: `can't be read: ${error.message}` })),
    Effect.flatMap((given): Effect.Effect<A | Fallback, WrongSetting> => {
      const text = Option.getOrElse(given, () => "").trim()
      if (text === "") return Effect.succeed(fallback)
      return Effect.fromResult(parse(text)).pipe(
        Effect.mapError((problem) => new WrongSetting({ variable: name, problem }))
      )
    })
  )

export const text: Parse<string> = Result.succeed

/** Value of the variable, of the file `<name>_FILE`, or of the command `<name>_COMMAND`. */
const secretText = Effect.fnUntraced(function* (name: string) {
  const ways = {
    given: { variable: name, text: yield* variable(name, text) },
    file: { variable: `${name}_FILE`, text: yield* variable(`${name}_FILE`, text) },
    command: { variable: `${name}_COMMAND`, text: yield* variable(`${name}_COMMAND`, text) }
  }
  const [first, second] = Object.values(ways).filter((way) => way.text !== null)
  if (second !== undefined) {
    return yield* new WrongSetting({ variable: first!.variable, problem: `is given beside ${second.variable}` })
  }
  const file = ways.file.text
  if (file !== null) {
    const read = Result.try({ try: () => readFileSync(file, "utf8").trim(), catch: (error) => error as Error })
    if (Result.isFailure(read)) {
      const problem = `can't be read: ${read.failure.message}`
      return yield* new WrongSetting({ variable: ways.file.variable, problem })
    }
    return { text: read.success === "" ? null : read.success, variable: ways.file.variable, file }
  }
  if (ways.command.text === null) return { text: ways.given.text, variable: name, file }
  const printed = yield* Effect.mapError(
    outputOf(ways.command.text),
    (problem) => new WrongSetting({ variable: ways.command.variable, problem })
  )
  return { text: printed, variable: ways.command.variable, file }
})

export const secret = Effect.fnUntraced(function* <A>(name: string, parse: Parse<A>) {
  const { text, variable, file } = yield* secretText(name)
  if (text === null) return { value: null, file }
  const value = yield* Effect.fromResult(parse(text)).pipe(
    Effect.mapError((problem) => new WrongSetting({ variable, problem }))
  )
  return { value, file }
})

export const listOf =
  <A>(separator: RegExp, parse: Parse<A>): Parse<ReadonlyArray<A>> =>
  (given) =>
    Result.all(
      given
        .split(separator)
        .filter((part) => part !== "")
        .map(parse)
    )

export const wholeNumber =
  (min: number, max: number): Parse<number> =>
  (given) =>
    /^\d{1,15}$/.test(given) && Number(given) >= min && Number(given) <= max
      ? Result.succeed(Number(given))
      : Result.fail(`must be a whole number from ${min} to ${max}, not "${given}"`)

export const oneOf =
  <const A extends string>(...known: ReadonlyArray<A>): Parse<A> =>
  (given) => {
    const found = known.find((one) => one === given.toLowerCase())
    return found === undefined ? Result.fail(`must be ${known.join(", ")}, not "${given}"`) : Result.succeed(found)
  }

const COMMAND_WITHIN = Duration.seconds(10)
const OUTPUT_MAX = 64 * 1024

/**
 * Output of a command that prints a secret, such as `vault kv get -field=key secret/posthaste`. Nothing it prints is
 * shown: it fails with words that follow the variable's name. Its process group is killed at the time limit.
 */
export const outputOf = (command: string, within = COMMAND_WITHIN): Effect.Effect<string, string> =>
  Effect.callback<string, string>((resume) => {
    // Its own process group, to be killed as a whole.
    const child = spawn("/bin/sh", ["-c", command], { stdio: ["ignore", "pipe", "ignore"], detached: true })
    const chunks: Array<Buffer> = []
    let size = 0
    const end = () => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, "SIGKILL")
      } catch {}
    }
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size > OUTPUT_MAX) {
        resume(Effect.fail(`printed more than ${OUTPUT_MAX} bytes`))
        end()
      } else chunks.push(chunk)
    })
    child.once("error", ({ message }) => resume(Effect.fail(`can't be run: ${message}`)))
    child.once("close", (code, signal) => {
      const text = Buffer.concat(chunks).toString("utf8").trim()
      if (code === 127) resume(Effect.fail(`ended with 127: there is no such command${BY_HAND}`))
      else if (code !== 0) resume(Effect.fail(`ended with ${code ?? signal}${BY_HAND}`))
      else resume(text === "" ? Effect.fail(`printed nothing${BY_HAND}`) : Effect.succeed(text))
    })
    return Effect.sync(end)
  }).pipe(
    Effect.timeoutOrElse({
      duration: within,
      orElse: () => Effect.fail(`did not end within ${Duration.toSeconds(within)} s`)
    })
  )

const BY_HAND = ". What it says is not shown here, because it may hold the secret: run it by hand"
