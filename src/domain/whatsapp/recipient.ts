/** A WhatsApp recipient: an E.164 phone number, kept as its digits. */

const filler = /[\s().-]/g
const digits = /^[1-9]\d{7,14}$/

export const recipientOf = (text: string): string | null => {
  const bare = text.replace(filler, "").replace(/^\+/, "")
  return digits.test(bare) ? bare : null
}
