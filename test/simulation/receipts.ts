/**
 * What providers tell us later. Anybody may say of what it took that it was delivered, when it likes: before its answer,
 * long after it, twice, or never, for the network loses it. A WhatsApp sender also owes a final word, good or bad,
 * and repeats it until we have heard it.
 */
import { DateTime, Exit, Result } from "effect"
import type { OutboundMessage } from "../../src/application/ports/Channels.ts"
import type { Receipt } from "../../src/application/ports/WhatsAppReceipts.ts"
import { recordReceipt } from "../../src/application/receipts/recordReceipt.ts"
import { EPOCH } from "./clock.ts"
import type { World } from "./world.ts"

/** How the provider calls what it took. */
export const providerNameOf = ({ messageId, epoch, attempt }: OutboundMessage) => `of-${messageId}-${epoch}-${attempt}`

const refused = { code: "undeliverable", message: "not reachable", retryable: false }

/** Tells it to some API process; `heard` when it was, `lost` when it may not have been. */
const tell = (world: World, message: OutboundMessage, receipt: Receipt, heard: () => void, lost: () => void): void => {
  const api = world.someApi()
  if (api === null) {
    lost()
    return
  }
  world.oracle.requests.told(message, receipt)
  const { process, services } = api
  // Whoever has waited in vain has gone, and hears no answer that comes later.
  let isGone = false
  const notHeard = world.timeline.after(5_000, () => {
    isGone = true
    lost()
  })
  process.schedule(() => {
    process.start(recordReceipt(message.orgId, receipt), services).addObserver((exit) => {
      notHeard()
      if (isGone && Exit.isSuccess(exit)) world.tally(`a receipt was ${exit.value}`)
      else if (Exit.isSuccess(exit)) {
        world.tally(`a receipt was ${exit.value}`)
        if (exit.value === "unknown") lost()
        else heard()
      } else {
        const failure = Exit.findError(exit)
        if (Result.isFailure(failure)) world.violate("no receipt ends in a defect", String(exit.cause))
        if (!isGone) lost()
      }
    })
  })
}

const receiptOf = (world: World, message: OutboundMessage, receipt: Receipt["receipt"]): Receipt => {
  const { dice } = world
  const { messageId, epoch, attempt, destination } = message
  const isNamed = world.laneOf(destination).channel === "whatsapp"
  const ours = dice.chance(isNamed ? 0.7 : 0.8)
  return {
    messageId: ours || !isNamed ? messageId : null,
    epoch: ours ? epoch : null,
    attempt: ours ? attempt : null,
    providerMessageId: isNamed ? providerNameOf(message) : null,
    receipt,
    reportedAt: DateTime.makeUnsafe(EPOCH + world.timeline.now),
    error: receipt === "failed" ? refused : null
  }
}

/** The receiver has taken the message. */
export const sayLater = (world: World, message: OutboundMessage): void => {
  const { dice, timeline, swarm } = world
  const isNamed = world.laneOf(message.destination).channel === "whatsapp"
  const final = isNamed && dice.chance(0.2) ? "failed" : "delivered"
  const words = isNamed ? (["sent", final] as const) : (["delivered", "read"] as const)
  const nothing = () => {}
  for (let times = 0; times < 2 && dice.chance(swarm.receipts); times++) {
    timeline.after(dice.next() * dice.pick([2, 50, 5_000, 5_000]), () =>
      tell(world, message, receiptOf(world, message, dice.pick(words)), nothing, nothing)
    )
  }
  if (!isNamed) return
  const insist = (): void => {
    tell(world, message, receiptOf(world, message, final), nothing, () =>
      timeline.after(dice.between(200, 2_000), insist)
    )
  }
  timeline.after(dice.next() * dice.pick([2, 500, 10_000]), insist)
}
