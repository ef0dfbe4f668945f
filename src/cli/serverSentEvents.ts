/**
 * Server-sent events out of pieces of text, wherever the pieces were cut. Data in, data out.
 *
 * Effect's own parser passes on only events with data. The feed also sends an id alone, and whoever lost that would come
 * back to an older place, or to none.
 */
export interface ServerSentEvent {
  /** Where to go on from once this was seen; null leaves it where it was. */
  readonly id: string | null
  /** Null for what only moves the id on. */
  readonly data: string | null
}

/** What is complete so far, and the rest, for when more has come. */
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
