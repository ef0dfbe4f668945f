/** What can be asked about circuits, and what is answered: the shapes, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { circuitStatuses } from "../../../domain/circuit/machine.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { idParam, listOf, Moment, paging, Reason } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

export const Circuit = Schema.Struct({
  id: Schema.String,
  destination: Schema.String.annotate({ description: "The destination it protects." }),
  status: Schema.Literals(circuitStatuses),
  failures: Schema.Int.annotate({ description: "In a row; of an open circuit, those it opened with." }),
  openUntil: Schema.NullOr(Moment)
}).annotate({ identifier: "Circuit" })

const PATH = "/circuits"

const list = HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(Circuit) }).annotateMerge(
  about("The circuit of every destination of the org.")
)

const get = HttpApiEndpoint.get("get", `${PATH}/:id`, { ...byId, success: Circuit }).annotateMerge(
  about("The circuit of one destination.")
)

const command = {
  params: idParam,
  payload: Reason.annotate({ identifier: "CircuitCommand" }),
  success: Circuit,
  error: [problemOf(404), ...bodyErrors]
}
const hold = HttpApiEndpoint.post("hold", `${PATH}/:id/hold`, command).annotateMerge(
  about("Stop calling a destination until its circuit is reset. What waits for it stays where it is.")
)
const reset = HttpApiEndpoint.post("reset", `${PATH}/:id/reset`, command).annotateMerge(
  about("Close a circuit by hand. Traffic comes back slowly.")
)

export const circuitsApi = HttpApiGroup.make("circuits")
  .add(list, get, hold, reset)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Circuits" }))
