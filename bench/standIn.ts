/** The stand-in for EventStoreDB in a process of its own: it keeps everything in memory, so what it costs is the protocol. */
import { type StandIn, startEventStore } from "../test/servers/eventStore.ts"
import { serve } from "./remote.ts"

let standIn: StandIn | null = null

const handlers = {
  start: async () => {
    standIn = await startEventStore()
    return standIn.url
  },
  facts: () => standIn!.log.all.length
}
export type StandInPart = typeof handlers

serve(handlers)
