/** The list of channels. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Channels } from "../../../application/ports/Channels.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, base, titled } from "../server/endpoints.ts"

const Channel = Schema.Struct({
  name: Schema.String.annotate({ description: "As messages name it." }),
  noun: Schema.String.annotate({ description: "What people call one of its destinations." }),
  path: Schema.String.annotate({ description: "Where its destinations are, such as /webhook-endpoints." })
}).annotate({ identifier: "Channel" })

export const channelsApi = HttpApiGroup.make("channels")
  .add(
    HttpApiEndpoint.get("list", "/channels", {
      success: Schema.Struct({ items: Schema.Array(Channel) }).annotate({ identifier: "ChannelList" })
    }).annotateMerge(about("endpoints:read", "The channels this Posthaste has."))
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Channels", "The ways in which messages can be sent."))

export const layer = HttpApiBuilder.group(base.add(channelsApi), "channels", (handlers) =>
  handlers.handle("list", () =>
    Effect.map(Channels, (channels) => ({
      items: [...channels.values()].map(({ name, noun, path }) => ({ name, noun, path: `/${path}` }))
    }))
  )
)
