/** The resource of circuits. A circuit is named by the destination it protects. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import {
  type CircuitView,
  commandCircuit,
  listCircuits,
  readCircuit
} from "../../../application/destinations/commandCircuit.ts"
import { circuitStatuses } from "../../../domain/circuit/machine.ts"
import { CommandRequest } from "../../api/messageRequests.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { idParam, listOf, Moment, paging } from "../server/fields.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, orNotFound, problemOf } from "../server/problem.ts"
import { readReason } from "../server/requestBody.ts"
import { destinationIdOf } from "./destinations.ts"

export const Circuit = Schema.Struct({
  id: Schema.String,
  destination: Schema.String.annotate({ description: "The destination it protects." }),
  status: Schema.Literals(circuitStatuses),
  failures: Schema.Int.annotate({ description: "In a row; of an open circuit, those it opened with." }),
  openUntil: Schema.NullOr(Moment)
}).annotate({ identifier: "Circuit" })

const PATH = "/circuits"

const commandOptions = {
  params: idParam,
  payload: CommandRequest,
  success: Circuit,
  error: [problemOf(404), ...bodyErrors]
}

export const circuitsApi = HttpApiGroup.make("circuits")
  .add(
    HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(Circuit) }).annotateMerge(
      about("endpoints:read", "The circuit of every destination of the org.")
    ),
    HttpApiEndpoint.get("get", `${PATH}/:id`, { ...byId, success: Circuit }).annotateMerge(
      about("endpoints:read", "The circuit of one destination.")
    ),
    HttpApiEndpoint.post("hold", `${PATH}/:id/hold`, commandOptions).annotateMerge(
      about(
        "endpoints:write",
        "Stop calling a destination until its circuit is reset. What waits for it stays where it is."
      )
    ),
    HttpApiEndpoint.post("reset", `${PATH}/:id/reset`, commandOptions).annotateMerge(
      about("endpoints:write", "Close a circuit by hand. Traffic comes back slowly.")
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Circuits", "The circuit that protects each destination."))

const circuitJson = ({ destination, state: { status, failures, blockedUntil } }: CircuitView) => ({
  id: destination,
  destination,
  status,
  failures,
  openUntil: status === "OPEN" ? blockedUntil : null
})

const list = (query: PageQuery) => pageOf("circuits", query, listCircuits, { of: Circuit, json: circuitJson })

const get = Effect.fnUntraced(function* (id: string) {
  return circuitJson(yield* orNotFound(yield* readCircuit(yield* ActingOrg, yield* destinationIdOf(id))))
})

const command = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  id: string,
  type: "HoldCircuit" | "ResetCircuit"
) {
  const reason = yield* readReason(request)
  const commanded = yield* commandCircuit(yield* ActingOrg, yield* destinationIdOf(id), { type, reason })
  return circuitJson(yield* orNotFound(commanded))
})

export const layer = HttpApiBuilder.group(base.add(circuitsApi), "circuits", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
    .handleRaw("hold", ({ request, params }) => answer(command(request, params.id, "HoldCircuit")))
    .handleRaw("reset", ({ request, params }) => answer(command(request, params.id, "ResetCircuit")))
)
