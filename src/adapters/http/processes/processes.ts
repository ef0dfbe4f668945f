/** The handler of the list of processes, for the operator. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Processes } from "../../../application/ports/Processes.ts"
import { Troubles } from "../../../application/processes/Troubles.ts"
import { Api } from "../server/Api.ts"
import { onePage } from "../server/listPages.ts"
import { answer } from "../server/problem.ts"

const list = Effect.gen(function* () {
  const processes = yield* (yield* Processes).list
  return { ...onePage(processes), troubles: yield* (yield* Troubles).now }
})

export const layer = HttpApiBuilder.group(Api, "processes", (handlers) => handlers.handle("list", () => answer(list)))
