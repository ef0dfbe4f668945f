/** Answers which channels there are, so that nobody has to know them by heart. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Channels } from "../../../application/ports/Channels.ts"
import { Api } from "../server/Api.ts"

export const layer = HttpApiBuilder.group(Api, "channels", (handlers) =>
  handlers.handle("list", () =>
    Effect.map(Channels, (channels) => ({
      items: [...channels.values()].map(({ name, noun, path }) => ({ name, noun, path: `/${path}` }))
    }))
  )
)
