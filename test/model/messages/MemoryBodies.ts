/** Bodies and responses, written by the event store, read and erased here. */
import { Effect, Layer } from "effect"
import { type AttemptPlace, Bodies } from "../../../src/application/ports/Bodies.ts"
import { PAGE_READ_BYTES } from "../../../src/application/ports/errors.ts"
import { bodyIn, eraseIn, Memory } from "../Memory.ts"

const placeIn = (key: string): AttemptPlace => {
  const [epoch, attempt] = key.split("/")
  return { epoch: Number(epoch), attempt: Number(attempt) }
}

const placesInOrder = (a: AttemptPlace, b: AttemptPlace) => a.epoch - b.epoch || a.attempt - b.attempt

export const layer = Layer.effect(
  Bodies,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Bodies.of({
      load: (id) => Effect.sync(() => bodyIn(tables, id)),
      responses: (id, from = { epoch: 0, attempt: 0 }) =>
        Effect.sync(() => {
          const all = [...(tables.responses.get(id) ?? [])]
            .map(([key, answer]) => ({ key, answer, place: placeIn(key) }))
            .filter(({ place }) => placesInOrder(from, place) <= 0)
            .sort((a, b) => placesInOrder(a.place, b.place))
          let bytes = 0
          const shown = all.filter(({ answer: { body, headers } }) => {
            const fits = bytes < PAGE_READ_BYTES
            bytes += 1 + Buffer.byteLength(body) + (headers === null ? 0 : Buffer.byteLength(JSON.stringify(headers)))
            return fits
          })
          return {
            answers: new Map(shown.map(({ key, answer: { body, headers } }) => [key, { body, headers }])),
            end: shown.length < all.length ? shown.at(-1)!.place : null
          }
        }),
      erase: (id) => Effect.sync(() => eraseIn(tables, id))
    })
  })
)
