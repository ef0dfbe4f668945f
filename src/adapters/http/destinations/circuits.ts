/** Answers what is asked about circuits. A circuit is named by the destination it protects. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type CircuitView, commandCircuit, listCircuits } from "../../../application/destinations/commandCircuit.ts"
import { DestinationId, isUuid } from "../../../domain/ids.ts"
import { moment } from "../messages/messageJson.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { openCursor, sealCursor } from "../server/cursor.ts"
import { LIMIT_DEFAULT } from "../server/fields.ts"
import { answer, notFound } from "../server/problem.ts"
import { decoded, decoderOf, limits, readOptionalJson } from "../server/requestBody.ts"
import { CircuitCommandRequest } from "./circuitsApi.ts"

const decodeCommand = decoderOf(CircuitCommandRequest)

const circuitJson = ({ destination, state: { status, failures, blockedUntil } }: CircuitView) => ({
  id: destination,
  destination,
  status,
  failures,
  openUntil: status === "OPEN" && blockedUntil !== null ? moment(blockedUntil) : null
})

const LIST = "circuits"

const list = Effect.fnUntraced(function* (query: { readonly limit?: number; readonly cursor?: string }) {
  const page = { limit: query.limit ?? LIMIT_DEFAULT, cursor: yield* openCursor(LIST, query.cursor) }
  const { items, nextCursor } = yield* listCircuits(yield* ActingOrg, page)
  return { items: items.map(circuitJson), nextCursor: sealCursor(LIST, nextCursor) }
})

const command = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  id: string,
  type: "HoldCircuit" | "ResetCircuit"
) {
  const orgId = yield* ActingOrg
  const { reason } = yield* decoded(decodeCommand, yield* readOptionalJson(request, limits.single))
  const circuit = isUuid(id)
    ? yield* commandCircuit(orgId, DestinationId.make(id), { type, reason: reason ?? null })
    : null
  return circuit === null ? yield* notFound() : circuitJson(circuit)
})

export const layer = HttpApiBuilder.group(Api, "circuits", (handlers) =>
  handlers
    .handle("list", ({ query }) => answer(list(query)))
    .handleRaw("hold", ({ request, params }) => answer(command(request, params.id, "HoldCircuit")))
    .handleRaw("reset", ({ request, params }) => answer(command(request, params.id, "ResetCircuit")))
)
