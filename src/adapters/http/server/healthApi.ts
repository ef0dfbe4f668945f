/** Whether this process lives, and whether it can work. Asked by load balancers, so without a key. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { troubles } from "../processes/troublesApi.ts"
import { words } from "./endpoints.ts"
import { Moment } from "./fields.ts"
import { problemOf } from "./problem.ts"

const Health = Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Health" })

const Readiness = Schema.Struct({
  status: Schema.Literal("ok"),
  rabbitmq: Schema.optionalKey(
    Schema.Struct({ status: Schema.Literals(["ok", "away"]), since: Moment }).annotate({
      description: "Where Posthaste has one. While it is away facts wait, and commands wait there; all else goes on."
    })
  ),
  troubles: Schema.optionalKey(troubles)
}).annotate({ identifier: "Readiness" })

export const healthApi = HttpApiGroup.make("health")
  .add(
    HttpApiEndpoint.get("live", "/healthz", { success: Health }).annotateMerge(words("The process runs.")),
    HttpApiEndpoint.get("ready", "/readyz", { success: Readiness, error: problemOf(503) }).annotateMerge(
      words("The store answers.")
    )
  )
  .annotateMerge(OpenApi.annotations({ title: "Health", description: "For load balancers. No API key." }))
