/** Whether this process lives, and whether it can work. Asked by load balancers, so without a key. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { about } from "./endpoints.ts"
import { problemOf } from "./problem.ts"

const Health = Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Health" })

export const healthApi = HttpApiGroup.make("health")
  .add(
    HttpApiEndpoint.get("live", "/healthz", { success: Health }).annotateMerge(about("The process runs.")),
    HttpApiEndpoint.get("ready", "/readyz", { success: Health, error: problemOf(503) }).annotateMerge(
      about("The store answers.")
    )
  )
  .annotateMerge(OpenApi.annotations({ title: "Health" }))
