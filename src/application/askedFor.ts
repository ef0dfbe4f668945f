/**
 * The org that a request is answered for; null is Posthaste's own work. A store shares its connections for lists out by it: however
 * many slow lists one org asks for, those of another are answered, and Posthaste reads on.
 */
import { Context, Effect } from "effect"
import type { OrgId } from "../domain/ids.ts"
import { OwnTurn, waitsForNobody } from "./pieces.ts"

export const AskedFor = Context.Reference<OrgId | null>("posthaste/application/askedFor", { defaultValue: () => null })

/** What is read once for whoever waits for it waits in the turn of none: not behind the lists of the org that asked for it first. */
export const forEverybody = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.provideService(AskedFor, null), Effect.provideService(OwnTurn, waitsForNobody))
