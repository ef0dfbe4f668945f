/** The name of a process as the holder of a lease: a random UUID. */
import { Effect, Random } from "effect"

export const newHolder: Effect.Effect<string> = Effect.map(Random.Random, (random) => {
  const digits = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random.nextDoubleUnsafe() * 16).toString(16)).join("")
  return `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`
})
