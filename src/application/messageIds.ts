/**
 * Ids for new messages: UUIDs of version 7. They sort by the millisecond of their creation, and ids from one call in
 * their order. Seed and clock determine them.
 */
import { Clock, Effect, Random } from "effect"
import { MessageId } from "../domain/ids.ts"

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0")

/** At most 4,096 at once: the twelve bits that keep their order. */
export const newMessageIds: (count: number) => Effect.Effect<ReadonlyArray<MessageId>> = Effect.fnUntraced(
  function* (count) {
    const time = hex(yield* Clock.currentTimeMillis, 12)
    const random = yield* Random.Random
    const upTo = (limit: number) => Math.floor(random.nextDoubleUnsafe() * limit)
    const first = upTo(4096 - count + 1)
    return Array.from({ length: count }, (_, index) => {
      const order = hex(first + index, 3)
      const variant = hex(0x8000 + upTo(0x4000), 4)
      const rest = hex(upTo(2 ** 48), 12)
      return MessageId.make(`${time.slice(0, 8)}-${time.slice(8)}-7${order}-${variant}-${rest}`)
    })
  }
)
