/**
 * The actions of a person on a message: those that the law allows, and those that would let its destination have it.
 */
import { DateTime, Result } from "effect"
import type { DestinationId, MessageId } from "../../ids.ts"
import { decide, type MessageCommand } from "../decider.ts"
import type { Message } from "../transitions.ts"
import type { Surroundings } from "./surroundings.ts"
import { isWaiting } from "./waiting.ts"

export interface Action {
  readonly action: "cancel" | "retry-now" | "replay" | "dismiss" | "resend" | "enable" | "resume" | "reset"
  readonly on: "message" | "destination" | "circuit"
  readonly id: string
  readonly says: string
}

export const actionsOf = (
  id: MessageId,
  destination: DestinationId,
  message: Message,
  { pause, disabling, circuit }: Surroundings,
  now: DateTime.Utc
): ReadonlyArray<Action> => {
  const isAllowed = (command: MessageCommand) => Result.isSuccess(decide(message, command))
  const replay = { type: "ReplayMessage", now, reason: null } as const
  const actions: Array<Action> = []
  const add = (action: Action["action"], says: string) => actions.push({ action, on: "message", id, says })
  const free = (action: Action["action"], on: Action["on"], says: string) =>
    actions.push({ action, on, id: destination, says })
  if (isWaiting(message)) {
    if (disabling !== null) free("enable", "destination", "enable the destination")
    if (pause !== null) free("resume", "destination", "send to the destination again")
    if (circuit.status !== "CLOSED") free("reset", "circuit", "close the circuit now, if the destination works again")
  }
  const { dueAt } = message.progress
  if (dueAt !== null && DateTime.isGreaterThan(dueAt, now) && isAllowed({ type: "HurryMessage", now }))
    add("retry-now", "send it now, before its time")
  if (isAllowed({ type: "CancelMessage", reason: null })) add("cancel", "never send it")
  if (isAllowed(replay)) add("replay", "send it again")
  else if (isAllowed({ ...replay, edited: true }))
    add("replay", "send it again with another payloadJson: its body was erased")
  if (!message.progress.dismissed && isAllowed({ type: "DismissMessage", reason: null }))
    add("dismiss", "take it from the list of dead letters")
  if (hasArrived.has(message.status)) add("resend", "send it once more, as a new message that names this one")
  return actions
}

/** The destination has it, and drops a second one with its id. */
const hasArrived: ReadonlySet<string> = new Set(["SENT", "DELIVERED"])
