/**
 * The command `posthaste`. Exit code 0 is success, 1 a failure or a violation found, 2 a wrong invocation. Every
 * failure is one line on standard error.
 */
// By file: the whole package takes longer to load than most commands run.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer, Result } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import manifest from "../package.json" with { type: "json" }
import { archives } from "./cli/archives.ts"
import { cancel } from "./cli/cancel.ts"
import { deadLetters } from "./cli/deadLetters.ts"
import { destinations } from "./cli/destinations.ts"
import { endpoints } from "./cli/endpoints.ts"
import { events } from "./cli/events.ts"
import { find } from "./cli/find.ts"
import { parked, repair } from "./cli/parked.ts"
import { projections } from "./cli/projections.ts"
import { rekey } from "./cli/rekey.ts"
import { replays } from "./cli/replays.ts"
import { plainResources } from "./cli/resources.ts"
import { resend, retryNow, send } from "./cli/send.ts"
import { migrate, serve } from "./cli/serve.ts"
import { show } from "./cli/show.ts"
import { stats } from "./cli/stats.ts"
import { status } from "./cli/status.ts"
import { streams } from "./cli/streams.ts"
import { tail } from "./cli/tail.ts"
import { note } from "./cli/terminal.ts"
import { startupErrorOf } from "./setup/startupError.ts"

const posthaste = Command.make("posthaste").pipe(
  Command.withDescription(
    "Outbound delivery: signed webhooks, WhatsApp and HTTP APIs, every message an event-sourced state machine. After npm start on this machine every command finds service and keys by itself."
  ),
  Command.withSubcommands([
    { group: "The service", commands: [serve, migrate, rekey] },
    {
      group: "Messages, over the API of a service",
      commands: [
        ...([send, retryNow, resend, cancel, find, show, tail, stats, status] as const),
        ...([destinations, deadLetters, replays, parked, repair, projections] as const)
      ]
    },
    { group: "Webhooks and events, over the API of a service", commands: [endpoints, events] },
    {
      group: "The other resources of the API",
      commands: plainResources([
        "destinations",
        "dead-letters",
        "replays",
        "endpoints",
        "events",
        "projections",
        "parked"
      ])
    },
    { group: "The stored facts, without a service", commands: [streams, ...archives] }
  ])
)

const USAGE = 2

/** Prints one line that points to the help, not the whole help. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? note(
          `posthaste: ${event.errors.map(({ message }) => message.replaceAll(/\s*\n\s*/g, " ")).join("; ")} (see ${event.commandPath.join(" ")} --help)`
        )
      : CliOutput.defaultPresenter.present(event)
}

const errorIn = (cause: Cause.Cause<unknown>): unknown => Result.getOrUndefined(Cause.findError(cause))

const isHelp = (error: unknown): error is CliError.ShowHelp => CliError.isCliError(error) && error._tag === "ShowHelp"

const reportStartupError = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) || isHelp(errorIn(cause)) ? Effect.void : note(startupErrorOf(cause))

const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return 0
  const error = errorIn(exit.cause)
  if (!isHelp(error)) return 1
  return error.errors.length > 0 ? USAGE : 0
}

const main = Command.run(posthaste, { version: manifest.version }).pipe(
  Effect.tapCause(reportStartupError),
  Effect.provide(
    Layer.mergeAll(
      CliOutput.layerPresenter(presenter),
      CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
    )
  ),
  Effect.provide(NodeServices.layer)
)

// Readers such as `head` close the pipe.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1))

NodeRuntime.runMain(main, { disableErrorReporting: true, teardown: (exit, end) => end(exitCodeOf(exit)) })
