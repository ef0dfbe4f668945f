/** The question before something final. It says how much there is, and is asked on a terminal only. */
import { Effect, Stream } from "effect"
import { Flag, Prompt, TerminalCapabilities } from "effect/cli"
import { type Service, switchFlag } from "./service.ts"
import { failed, grouped, note, print } from "./terminal.ts"

export const confirmFlags = {
  preview: switchFlag("preview", "Only say what it would change"),
  yes: switchFlag("yes", "Do not ask").pipe(Flag.withAlias("y"))
}

export const confirmed = Effect.fnUntraced(function* (
  says: string,
  { yes, preview }: { readonly yes: boolean; readonly preview: boolean }
) {
  if (preview) return yield* Effect.as(print(says), false)
  if (yes) return true
  yield* note(says)
  const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
  if (!canPrompt) return yield* failed("nothing was changed: confirm with --yes")
  if (yield* Prompt.run(Prompt.Confirm({ message: "Go on?" }))) return true
  return yield* Effect.as(note("nothing was changed"), false)
})

const COUNTED_MAX = 1_000

export const countOf = (service: Service, filter: Readonly<Record<string, string>>) =>
  service.items<unknown>("/outbound/messages", { ...filter, limit: "200" }).pipe(
    Stream.take(COUNTED_MAX),
    Stream.runCount,
    Effect.map((count) => (count < COUNTED_MAX ? grouped(count) : `${grouped(COUNTED_MAX)} or more`))
  )
