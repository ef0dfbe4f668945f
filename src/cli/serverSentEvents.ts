/**
 * Reads server-sent events from pieces of text, wherever the pieces were cut. Data in, data out.
 *
 * Effect's own parser passes on only events with data. The feed also sends an id alone; a client that lost it would
 * reconnect at an older place, or at none.
 */
export interface ServerSentEvent {
  /** Where to reconnect after this event; null leaves the place as it was. */
  readonly id: string | null
  /** Null for an event that only moves the id. */
  readonly data: string | null
}

/** The complete events, and the rest of the text, to be joined with the next piece. */
export const takeEvents = (text: string): readonly [events: ReadonlyArray<ServerSentEvent>, rest: string] => {
  const blocks = text.replaceAll("\r\n", "\n").split("\n\n")
  const rest = blocks.pop()!
  return [blocks.map(eventOf), rest]
}

const eventOf = (block: string): ServerSentEvent => {
  let id: string | null = null
  const data: Array<string> = []
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":")
    const value = line.slice(colon + 1).replace(/^ /, "")
    if (line.startsWith("id:")) id = value
    else if (line.startsWith("data:")) data.push(value)
  }
  return { id, data: data.length === 0 ? null : data.join("\n") }
}
