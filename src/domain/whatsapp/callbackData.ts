/**
 * The callback data of a WhatsApp message, which every receipt returns: with it a receipt finds its message when Meta's
 * answer, and with it Meta's own id, was lost.
 */
import { isUuid, MessageId } from "../ids.ts"

export interface SentAttempt {
  readonly messageId: MessageId
  readonly epoch: number
  readonly attempt: number
}

const FORM = "posthaste1"

export const callbackData = ({ messageId, epoch, attempt }: SentAttempt): string =>
  `${FORM}.${messageId}.${epoch}.${attempt}`

export const readCallbackData = (text: string): SentAttempt | null => {
  const [form, id = "", epoch = "", attempt = "", ...rest] = text.split(".")
  const isOurs = form === FORM && isUuid(id) && isCount(epoch) && isCount(attempt) && rest.length === 0
  return isOurs ? { messageId: MessageId.make(id), epoch: Number(epoch), attempt: Number(attempt) } : null
}

const isCount = (text: string) => /^[1-9]\d{0,8}$/.test(text)
