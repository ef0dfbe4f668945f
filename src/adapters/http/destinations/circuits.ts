/** Answers what is asked about circuits. A circuit is named by the destination it protects. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import {
  type CircuitView,
  commandCircuit,
  listCircuits,
  readCircuit
} from "../../../application/destinations/commandCircuit.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, orNotFound } from "../server/problem.ts"
import { readReason } from "../server/requestBody.ts"
import { Circuit } from "./circuitsApi.ts"
import { destinationIdOf } from "./destinations.ts"

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

export const layer = HttpApiBuilder.group(Api, "circuits", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handle("get", ({ params }) => answer(get(params.id)))
    .handleRaw("hold", ({ request, params }) => answer(command(request, params.id, "HoldCircuit")))
    .handleRaw("reset", ({ request, params }) => answer(command(request, params.id, "ResetCircuit")))
)
