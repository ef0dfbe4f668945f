/**
 * The data that Posthaste sends with a WhatsApp message and that WhatsApp returns with every receipt: the attempt it
 * belongs to. With it the message of a receipt is found when Meta's answer, and with it Meta's own id, was lost.
 */
import { isUuid, MessageId } from "../ids.ts"

export interface SentAttempt {
  readonly messageId: MessageId
  readonly epoch: number
  readonly attempt: number
}

const FORM = "posthaste1"

/** Some 60 of the 512 allowed characters. */
export const callbackData = ({ messageId, epoch, attempt }: SentAttempt): string =>
  `${FORM}.${messageId}.${epoch}.${attempt}`

/** Null for data that Posthaste did not write: other systems may send from the same number. */
export const readCallbackData = (text: string): SentAttempt | null => {
  const [form, id = "", epoch = "", attempt = "", ...rest] = text.split(".")
  const isOurs = form === FORM && isUuid(id) && isCount(epoch) && isCount(attempt) && rest.length === 0
  return isOurs ? { messageId: MessageId.make(id), epoch: Number(epoch), attempt: Number(attempt) } : null
}

const isCount = (text: string) => /^[1-9]\d{0,8}$/.test(text)
