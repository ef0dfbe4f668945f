import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { Callers } from "../../contracts/requests/Callers.ts"
import { Memory } from "../Memory.ts"

/** A transaction begins with its first command, as PostgreSQL counts them. */
export const layer = Layer.effect(
  Callers,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { sqlCommands } = tables
    let n = 0
    return Callers.of({
      begin: Effect.sync(() => {
        let tx: number | null = null
        const ended = Effect.sync(() => void (tx !== null && sqlCommands.open.delete(tx)))
        return {
          send: (request, { org = "acme", key = null as string | null } = {}) =>
            Effect.sync(() => {
              if (tx === null) {
                tx = sqlCommands.nextTx++
                sqlCommands.open.add(tx)
              }
              const place = { tx: String(tx), n: String(++n) }
              const id = randomUUID()
              const command = { place, id, orgId: org, type: "SendMessage", key, request, traceparent: null }
              sqlCommands.given.push({ tx, at: now(), command })
              return id
            }),
          commit: ended,
          rollback: Effect.andThen(
            Effect.sync(() => {
              const kept = sqlCommands.given.filter((given) => given.tx !== tx)
              sqlCommands.given.splice(0, sqlCommands.given.length, ...kept)
            }),
            ended
          )
        }
      })
    })
  })
)
