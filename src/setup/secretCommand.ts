/**
 * Output of a command that prints a secret, such as `vault kv get -field=key secret/posthaste`, run once in a shell at
 * the start. Its output and errors are never shown. At its time limit its whole process group is killed.
 */
import { spawn } from "node:child_process"
import { Duration, Effect } from "effect"

export const COMMAND_WITHIN = Duration.seconds(10)
const OUTPUT_MAX = 64 * 1024

/** Fails with words that follow the variable's name. */
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
      } catch {
        // Already ended.
      }
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
