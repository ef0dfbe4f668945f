/** A subscriber of the feed that reads server-sent events as a browser does, and can stop reading. */
import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { OPERATOR } from "../served.ts"

export interface FeedEvent {
  readonly id: string
  readonly data: {
    readonly stream: string
    readonly version: number
    readonly type: string
    readonly actor: string | null
    // Each type has its own.
    // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
    readonly data: any
    readonly message: Readonly<Record<string, unknown>> | null
  }
}

export const follow = async (
  url: string,
  org: string,
  query = "",
  lastEventId: string | null = null,
  key = OPERATOR
) => {
  const asked = request(`${url}/api/v1/feed${query}`, {
    headers: {
      authorization: `Bearer ${key}`,
      "x-org-id": org,
      ...(lastEventId === null ? {} : { "last-event-id": lastEventId })
    }
  })
  asked.end()
  const [response] = (await once(asked, "response")) as [IncomingMessage]
  const events: Array<FeedEvent> = []
  const comments: Array<string> = []
  let id = lastEventId
  let unread = ""
  let hasEnded = false
  response.setEncoding("utf8")
  response.on("data", (text: string) => {
    const blocks = (unread + text).split("\n\n")
    unread = blocks.pop()!
    for (const block of blocks) {
      let data = ""
      for (const line of block.split("\n")) {
        if (line.startsWith("id: ")) id = line.slice(4)
        if (line.startsWith("data: ")) data += line.slice(6)
        if (line.startsWith(": ")) comments.push(line.slice(2))
      }
      if (data !== "") events.push({ id: id!, data: JSON.parse(data) })
    }
  })
  response.on("error", () => {})
  response.on("close", () => (hasEnded = true))

  const until = async (what: string, holds: () => boolean, withinMs = 60_000) => {
    const deadline = performance.now() + withinMs
    while (!holds()) {
      if (performance.now() > deadline)
        throw new Error(`${what} did not happen: ${JSON.stringify(events).slice(-1_000)} ${comments}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  await until("the beginning", () => comments.length > 0 || response.statusCode !== 200)
  return {
    response,
    events,
    comments,
    lastId: () => id,
    hasEnded: () => hasEnded,
    until,
    received: (count: number) => until(`${count} events`, () => events.length >= count),
    stop: () => asked.destroy()
  }
}
