/** Destinations of every kind for tests, made from the records that Posthaste itself is made of. */
import { randomUUID } from "node:crypto"
import { DateTime, Effect, Redacted, Result } from "effect"
import * as AmqpChannel from "../../../src/adapters/channels/amqp/AmqpChannel.ts"
import * as HttpTargetChannel from "../../../src/adapters/channels/http/HttpTargetChannel.ts"
import type { HttpTargetSettings } from "../../../src/adapters/channels/http/settings.ts"
import { parseNetworks } from "../../../src/adapters/channels/net/addressGuard.ts"
import type { EndpointSettings } from "../../../src/adapters/channels/webhook/settings.ts"
import * as WebhookChannel from "../../../src/adapters/channels/webhook/WebhookChannel.ts"
import type { WhatsAppSettings } from "../../../src/adapters/channels/whatsapp/settings.ts"
import * as WhatsAppChannel from "../../../src/adapters/channels/whatsapp/WhatsAppChannel.ts"
import { publicKeyOf } from "../../../src/application/accept/addressing.ts"
import { type Sender, senderOf } from "../../../src/application/deliver/Senders.ts"
import { settingsOf } from "../../../src/application/destinations/destinations.ts"
import type { AnyChannel, Channel } from "../../../src/application/ports/Channels.ts"
import {
  type Alerting,
  type Destination,
  type DestinationSettings,
  Destinations,
  type Secrets
} from "../../../src/application/ports/Destinations.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { fromRecorded as circuitFact } from "../../../src/domain/circuit/facts.ts"
import { DestinationId, type OrgId } from "../../../src/domain/ids.ts"

const rules = { allowedNetworks: Result.getOrThrow(parseNetworks("127.0.0.0/8")), exemptions: [] }

export const webhook = WebhookChannel.channel(rules)
export const http = HttpTargetChannel.channel(rules)
export const amqp = AmqpChannel.channel(rules)
/** Nobody is asked whose a number is: Meta is not there. */
export const { ownership: _, ...whatsapp } = WhatsAppChannel.channel({
  baseUrl: new URL("https://graph.facebook.com"),
  codes: new Map()
})

export const newNumber = () => String(BigInt(`0x${randomUUID().replaceAll("-", "").slice(0, 12)}`))

interface Beside {
  readonly secrets?: Secrets
  readonly alerting?: Alerting
}

/** A destination whose public key, if its kind has one, is free. */
const make =
  <Settings extends DestinationSettings>(
    channel: AnyChannel,
    required: () => Partial<Settings>,
    secretsOf: () => Secrets
  ) =>
  (orgId: OrgId, change: Partial<Settings> = {}, { secrets, alerting }: Beside = {}) =>
    Effect.gen(function* () {
      const settings = settingsOf(channel, { ...required(), ...change })
      const key = publicKeyOf(channel)
      const all = secrets ?? secretsOf()
      const lookup = Object.keys(channel.secrets).find((name) => channel.secrets[name]!.lookup)
      const made = yield* (yield* Destinations).create(channel, orgId, {
        settings,
        secrets: all,
        published: {},
        publicKey: key === null ? null : (settings as unknown as Record<string, string>)[key]!,
        lookup: lookup === undefined ? null : all[lookup]!,
        alerting: alerting ?? null,
        call: null
      })
      return made as Destination<Settings>
    })

export const makeEndpoint = make<EndpointSettings>(
  webhook,
  () => ({ url: "https://shop.example/hook" }),
  () => ({ secret: Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") })
)

export const makeTarget = make<HttpTargetSettings>(
  http,
  () => ({ url: "https://psp.example/charges" }),
  () => ({})
)

export const makeAccount = make<WhatsAppSettings>(
  whatsapp,
  () => ({ phoneNumberId: newNumber() }),
  () => ({
    accessToken: Redacted.make("EAAG1"),
    appSecret: Redacted.make("abc"),
    verifyToken: Redacted.make("hub")
  })
)

/** A webhook endpoint that alerts are sent to. */
export const makeAlertTarget = (orgId: OrgId, change: Partial<Alerting> = {}) =>
  makeEndpoint(
    orgId,
    {},
    {
      alerting: {
        type: "webhook",
        events: ["circuit", "oldestDue"],
        oldestDueSeconds: 60,
        severity: "critical",
        description: "the night shift",
        ...change
      }
    }
  )

type ForSending = Destinations["Service"]["forSending"]

/** An open channel that knows of destinations what `forSending` says. */
export const senderKnowing = (channel: AnyChannel, forSending: ForSending) =>
  senderOf(channel).pipe(
    Effect.provideService(Destinations, { forSending } as Destinations["Service"]),
    Effect.map((sender) => sender as Required<Sender>)
  )

/** A destination as a store would answer it. */
export const destinationOf = <Settings extends DestinationSettings>(
  channel: Channel<Settings>,
  orgId: OrgId,
  given: Partial<Settings>
): Destination<Settings> => ({
  id: DestinationId.make(randomUUID()),
  orgId,
  channel: channel.name,
  settings: settingsOf(channel as AnyChannel, given) as Settings,
  secretNames: [],
  published: {},
  alerting: null,
  paused: false,
  disabledReason: null,
  enabledAt: null,
  version: 1,
  createdAt: DateTime.makeUnsafe(0),
  updatedAt: DateTime.makeUnsafe(0)
})

/** The facts of a circuit. */
export const circuitFacts = Effect.fnUntraced(function* (destination: DestinationId) {
  const rows = yield* (yield* Journals).load(`circuit-${destination}`)
  return rows.map((row) => Result.getOrThrow(circuitFact(row)))
})
