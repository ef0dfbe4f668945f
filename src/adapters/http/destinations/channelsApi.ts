/** Which channels there are, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { OrgAccess } from "../server/auth.ts"
import { about } from "../server/endpoints.ts"

const Channel = Schema.Struct({
  name: Schema.String.annotate({ description: "As messages name it." }),
  noun: Schema.String.annotate({ description: "What people call one of its destinations." }),
  path: Schema.String.annotate({ description: "Where its destinations are, such as /webhook-endpoints." })
}).annotate({ identifier: "Channel" })

export const channelsApi = HttpApiGroup.make("channels")
  .add(
    HttpApiEndpoint.get("list", "/channels", {
      success: Schema.Struct({ items: Schema.Array(Channel) })
    }).annotateMerge(about("The channels this Posthaste has."))
  )
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Channels" }))
