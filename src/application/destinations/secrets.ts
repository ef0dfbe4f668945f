/** The secret of a destination that its owner can rotate and see, and the public parts of secrets. */
import { DateTime, Effect, Redacted, Result } from "effect"
import type { DestinationId, OrgId } from "../../domain/ids.ts"
import type { AnyChannel } from "../ports/Channels.ts"
import { type Destination, Destinations, goodAt, type OpenDestination } from "../ports/Destinations.ts"
import { faultsOf, publishedOf, readDestination } from "./destinations.ts"

export const rotatingSecretOf = ({ secrets }: AnyChannel): string | null =>
  Object.keys(secrets).find((name) => secrets[name]!.rotates) ?? null

/**
 * Replaces the destination's secret by the given or a new one; the old one stays good for the grace. A grace of 0 ends
 * every earlier secret. Null when the org has no such destination.
 */
export const rotateSecret = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  name: string,
  given: string | null,
  graceSeconds: number
) {
  const before = yield* readDestination(channel, orgId, id)
  if (before === null) return null
  const { secretNames, settings } = before
  const secrets: Record<string, string> = given === null ? {} : { [name]: given }
  const faults = faultsOf(channel, { settings, secretNames, secrets, given: [], before: settings })
  if (faults.length > 0) return Result.fail(faults)
  const secret = given === null ? channel.secrets[name]!.generate!(settings) : Redacted.make(given)
  const previousUntil = DateTime.add(yield* DateTime.now, { seconds: graceSeconds })
  const published = publishedOf(channel, { [name]: secret })
  const rotation = { name, secret, published, previousUntil }
  const open = yield* (yield* Destinations).rotateSecret(channel, orgId, id, rotation)
  return open === null ? null : Result.succeed(yield* currentOf(channel, open, name))
})

export const showSecret = Effect.fnUntraced(function* (
  channel: AnyChannel,
  orgId: OrgId,
  id: DestinationId,
  name: string
) {
  const destinations = yield* Destinations
  const destination = yield* readDestination(channel, orgId, id)
  if (destination === null) return null
  const open =
    publicNameOf(channel, destination, name) === null
      ? yield* destinations.showSecret(channel, orgId, id, name)
      : yield* destinations.forSending(orgId, id)
  return open === null ? null : yield* currentOf(channel, open, name)
})

const publicNameOf = ({ secrets }: AnyChannel, { published }: Destination, name: string): string | null => {
  const field = secrets[name]!.publishes?.name
  return field !== undefined && published[field] !== undefined ? field : null
}

const currentOf = (channel: AnyChannel, { destination, secrets, previousSecrets }: OpenDestination, name: string) =>
  Effect.map(DateTime.now, (now) => {
    const published = publicNameOf(channel, destination, name)
    const ends = goodAt(previousSecrets, now).filter((each) => each.name === name)
    return {
      shown:
        published === null
          ? { [name]: Redacted.value(secrets[name]!) }
          : { [published]: destination.published[published]! },
      previousUntil: ends.reduce<DateTime.Utc | null>(
        (latest, { until }) => (latest === null ? until : DateTime.max(latest, until)),
        null
      )
    }
  })
